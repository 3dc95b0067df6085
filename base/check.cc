#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace motley {

void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  std::fprintf(stderr, "motley: bug: %s is false at %s:%d: %s\n", condition, file, line,
               message.c_str());
  std::abort();
}

}  // namespace motley
