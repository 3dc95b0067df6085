// Outputs that the user names on the command line.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"

namespace motley {

// Replaces the file by `text`, whole or not at all, as write_file_atomic. A link is followed; what
// is not a regular file, as /dev/stdout or a pipe, is written to and stays what it is. kCorrupt
// when it cannot be written.
[[nodiscard]] Result<void> write_output(const std::filesystem::path& path, std::string_view text);

// Whether write_output would find the place to write it. Leaves nothing. For finding a mistake
// before the work whose result is to be written.
[[nodiscard]] Result<void> check_output(const std::filesystem::path& path);

}  // namespace motley
