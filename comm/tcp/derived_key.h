// Derives keys for single purposes from the secret of a launch, so that the leak of one reveals
// nothing about another: HKDF with SHA-256 (RFC 5869), without salt, the purpose as its info.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace motley {

// Returns 32 bytes. kInternal if OpenSSL fails.
[[nodiscard]] Result<std::string> derive_key(std::string_view secret, std::string_view purpose);

}  // namespace motley
