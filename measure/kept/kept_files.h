// Small files that are kept in a folder of the user's from one start to the next, each under a name
// of its own: whole or absent, however many processes write, and not more than so many.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace motley {

// Writes beside and renames; makes the folder where it is missing, and removes those with the same
// extension that were not written for longest where there are more than `files_max`. kCorrupt when
// it cannot be written.
[[nodiscard]] Result<void> keep_file(const std::filesystem::path& path,
                                     const std::string& text,
                                     std::size_t files_max);

}  // namespace motley
