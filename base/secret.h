// Secrets: random bytes that are shared only by the processes of one launch.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace motley {

inline constexpr std::size_t kSecretBytes = 32;

// kSecretBytes from the system's generator. kInternal if the generator fails.
[[nodiscard]] Result<std::string> make_secret();

// Overwrites the bytes in a way that the compiler does not optimise away, and empties the text.
void wipe(std::string& secret);

}  // namespace motley
