// Keys for single purposes out of the secret of a launch, so that what one use gives away says
// nothing about another: HKDF with SHA-256 (RFC 5869), without salt, the purpose as its info.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace motley {

// 32 bytes. kInternal when OpenSSL cannot compute it.
[[nodiscard]] Result<std::string> derive_key(std::string_view secret, std::string_view purpose);

}  // namespace motley
