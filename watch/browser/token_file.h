// The token of a server that programs come back to, such as one that scrapes metrics: kept in a
// file that the person names, so that it is the same after a restart.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace motley {

inline constexpr std::size_t kTokenCharactersMin = 32;
inline constexpr std::size_t kTokenCharactersMax = 128;

// The token in the file. Where there is no file, one that only this person can read is made, with a
// new token. kConfig where others than its owner and group can read it, or it holds no token: one
// line of letters, digits, '-', '_', '.' and '~', as long as the bounds above say.
[[nodiscard]] Result<std::string> kept_token(const std::filesystem::path& file);

}  // namespace motley
