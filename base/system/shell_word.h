// Words for a person's shell, in commands that are printed to be copied or run elsewhere.
#pragma once

#include <string>

namespace motley {

// `word` such that a POSIX shell reads exactly it: unchanged when harmless, else in single quotes.
[[nodiscard]] std::string quote_for_shell(const std::string& word);

}  // namespace motley
