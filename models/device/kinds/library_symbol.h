// A function of a library that this process has opened, by name: no build needs the library.
#pragma once

#include <dlfcn.h>

namespace motley {

// nullptr where no open library has it. `Function` is its type, which nothing else vouches for.
template <class Function>
[[nodiscard]] Function* library_symbol(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));  // NOLINT
}

}  // namespace motley
