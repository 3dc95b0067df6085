// MOTLEY_CHECK(condition, "text with {}", values…): an invariant of this program. A violated
// invariant is a bug: the process prints the condition, the values and the source location, and
// aborts. Never used on bytes from a peer, a file or a user: those failures are Results.
#pragma once

#include <fmt/format.h>

#include <string>

namespace motley {

[[noreturn]] void check_failed(const char* condition,
                               const char* file,
                               int line,
                               const std::string& message);

}  // namespace motley

#define MOTLEY_CHECK(condition, ...)                                                      \
  do {                                                                                    \
    if (!(condition)) [[unlikely]] {                                                      \
      ::motley::check_failed(#condition, __FILE__, __LINE__, ::fmt::format(__VA_ARGS__)); \
    }                                                                                     \
  } while (false)
