// Secrets: random bytes that only those hold who belong to one launch.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace motley {

inline constexpr std::size_t kSecretBytes = 32;

// kSecretBytes from the system's generator. kInternal when it has none to give.
[[nodiscard]] Result<std::string> make_secret();

// Overwrites the bytes, in a way that the compiler keeps, and empties the text.
void wipe(std::string& secret);

}  // namespace motley
