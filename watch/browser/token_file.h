// A persistent access token for clients that reconnect, such as a metrics scraper. It is stored in
// a file that the user names, so it is the same after a restart.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace motley {

inline constexpr std::size_t kTokenCharactersMin = 32;
inline constexpr std::size_t kTokenCharactersMax = 128;

// Returns the token in the file. If the file does not exist, it is created with a new token and is
// readable by its owner only. kConfig if users other than its owner and group can read it, or if it
// holds no valid token: one line of letters, digits, '-', '_', '.' and '~', with a length within
// the bounds above.
[[nodiscard]] Result<std::string> stored_token(const std::filesystem::path& file);

}  // namespace motley
