// Small persistent files in a folder of the user, in bounded number. Each is complete or absent,
// with any number of writing processes.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace motley {

// Writes a temporary file and renames it. Creates a missing folder. If there are more than
// `files_max` files with the same extension, removes those written longest ago. kCorrupt if the
// file cannot be written.
[[nodiscard]] Result<void> store_file(const std::filesystem::path& path,
                                      const std::string& text,
                                      std::size_t files_max);

}  // namespace motley
