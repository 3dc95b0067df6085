// How the far device ends the process where a program misused it: what a real device would leave
// to luck is no error that anybody may catch.
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
