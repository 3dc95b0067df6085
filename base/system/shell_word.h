// Quoting for the user's shell, in commands that are printed to be copied or run elsewhere.
#pragma once

#include <string>

namespace motley {

// Quotes `word` so that a POSIX shell reads exactly it: unchanged if safe, else in single quotes.
[[nodiscard]] std::string quote_for_shell(const std::string& word);

}  // namespace motley
