#include "base/result.h"

namespace motley {

std::string describe(const Error& error) {
  std::string text = "motley: error: " + error.what + "\n";
  if (!error.cause.empty()) text += "  cause: " + error.cause + "\n";
  if (!error.remedy.empty()) text += "  try:   " + error.remedy + "\n";
  return text;
}

Error with_context(Error error, const std::string& context) {
  error.what = context + ": " + error.what;
  return error;
}

}  // namespace motley
