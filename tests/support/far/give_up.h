// Ends the process after a misuse of the far device. On a real device the result would be
// undefined, so this is not an exception that could be caught.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace motley::far {

[[noreturn]] inline void give_up(const std::string& why) {
  std::fprintf(stderr, "far device: %s\n", why.c_str());
  std::abort();
}

}  // namespace motley::far
