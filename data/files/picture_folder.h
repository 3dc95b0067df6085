// A folder of pictures: a sub-folder for each class, with PNG and JPEG files. docs/formats/data.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "base/progress_counter.h"
#include "base/result.h"
#include "data/files/columns.h"

namespace motley {

// Whether it has a sub-folder with a PNG or JPEG file, by file names.
[[nodiscard]] bool holds_pictures(const std::filesystem::path& folder);

// The memory that open_picture_folder uses; 0 if it is no such folder.
[[nodiscard]] std::uint64_t picture_folder_bytes(const std::filesystem::path& folder,
                                                 std::span<const std::int64_t> shape);

// Decodes all pictures into memory at the size of `shape`, [channels, height, width]. Sub-folders
// `train` and `val` or `test` separate the parts. kData if a picture is damaged, a class is empty
// or only in the held-out part, or they take more than 4 GiB. `work` counts the decoded pictures;
// nullptr: not counted.
[[nodiscard]] Result<ExampleFiles> open_picture_folder(const std::filesystem::path& folder,
                                                       std::span<const std::int64_t> shape,
                                                       ProgressCounter* work);

}  // namespace motley
