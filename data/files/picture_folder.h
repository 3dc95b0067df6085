// A folder of pictures: a sub-folder for each class. docs/formats/data.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "base/progress_counter.h"
#include "base/result.h"
#include "data/files/columns.h"

namespace motley {

// Whether it has a sub-folder with a picture.
[[nodiscard]] bool holds_pictures(const std::filesystem::path& folder);

// The memory that open_picture_folder uses; 0 if it is no such folder.
[[nodiscard]] std::uint64_t picture_folder_bytes(const std::filesystem::path& folder,
                                                 std::span<const std::int64_t> shape);

// The folder with the class folders to train on: `folder`, or its sub-folder `train`.
[[nodiscard]] std::filesystem::path train_part(const std::filesystem::path& folder);

// Decodes all pictures into memory at the size of `shape`, [channels, height, width]. Sub-folders
// `train` and `val` or `test` separate the parts. kData if a class is empty or only in the held-out
// part, if they take more than 4 GiB, or if pictures are damaged: all of them are counted and the
// first ones named. `skips_damaged`: these are left out instead, unless a class has no others.
// `work` counts the decoded pictures; nullptr: not counted.
[[nodiscard]] Result<ExampleFiles> open_picture_folder(const std::filesystem::path& folder,
                                                       std::span<const std::int64_t> shape,
                                                       bool skips_damaged,
                                                       ProgressCounter* work);

// The pictures of `folder` as a held-out set, as the result's `train`: those of its sub-folder
// `val` or `test` beside `train`, or else all. Their classes are those of the training pictures in
// `train_folder`, by name. Errors as open_picture_folder; kData also if a class has no training
// pictures.
[[nodiscard]] Result<ExampleFiles> open_held_out_pictures(const std::filesystem::path& folder,
                                                          const std::filesystem::path& train_folder,
                                                          std::span<const std::int64_t> shape,
                                                          bool skips_damaged,
                                                          ProgressCounter* work);

}  // namespace motley
