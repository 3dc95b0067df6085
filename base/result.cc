#include "base/result.h"

#include <algorithm>

namespace motley {

bool is_stop(const Error& error) {
  return error.code == ErrorCode::kInterrupted || error.code == ErrorCode::kTerminated;
}

std::string describe(const Error& error) {
  return std::string(is_stop(error) ? "motley: stopped: " : "motley: error: ") + in_full(error);
}

std::string in_full(const Error& error) {
  std::string text = error.what + "\n";
  if (!error.cause.empty()) text += "  cause: " + error.cause + "\n";
  if (error.remedy.empty()) return text;
  text += "  try:   ";
  for (const char c : error.remedy) text += c == '\n' ? "\n         " : std::string(1, c);
  return text + "\n";
}

std::string excerpt(std::string_view text, std::size_t bytes_max) {
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  std::size_t length = std::min(text.size(), bytes_max);
  // Not within a character of UTF-8.
  while (length < text.size() && length > 0 && continues(text[length])) --length;
  std::string quoted(text.substr(0, length));
  for (char& c : quoted) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return length < text.size() ? quoted + "…" : quoted;
}

Error with_context(Error error, const std::string& context) {
  error.what = context + ": " + error.what;
  return error;
}

}  // namespace motley
