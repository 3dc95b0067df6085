// Outputs that the user names on the command line.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"

namespace motley {

// Replaces the file atomically, as write_file_atomic does. A symbolic link is followed; anything
// but a regular file, such as /dev/stdout or a pipe, is written to and not replaced. kCorrupt if it
// cannot be written.
[[nodiscard]] Result<void> write_output(const std::filesystem::path& path, std::string_view text);

// Checks that write_output could write there, and leaves nothing behind. It finds mistakes before
// the work whose result is to be written.
[[nodiscard]] Result<void> check_output(const std::filesystem::path& path);

// Writes a file that does not exist, even if another process creates it in the meantime. kCorrupt
// if it cannot be written, or does not hold the text afterwards.
[[nodiscard]] Result<void> write_new_output(const std::filesystem::path& path,
                                            std::string_view text);

// Checks that write_new_output could write there. kConfig if the file exists.
[[nodiscard]] Result<void> check_new_output(const std::filesystem::path& path);

}  // namespace motley
