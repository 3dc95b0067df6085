// Looks up a function of an open library by name, so that no build needs the library.
#pragma once

#include <dlfcn.h>

namespace motley {

// nullptr if no open library has it. The caller is responsible for the type `Function`.
template <class Function>
[[nodiscard]] Function* library_symbol(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));  // NOLINT
}

}  // namespace motley
