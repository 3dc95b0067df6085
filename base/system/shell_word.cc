#include "base/system/shell_word.h"

namespace motley {

std::string quote_for_shell(const std::string& word) {
  constexpr const char* kHarmless =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  if (!word.empty() && word.find_first_not_of(kHarmless) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";  // close the quotes, an escaped quote, reopen
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

}  // namespace motley
