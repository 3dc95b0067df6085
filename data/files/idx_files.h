// IDX files, the format of MNIST and similar data sets: images and labels in one file each.
// docs/formats/data.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/files/columns.h"

namespace motley {

struct IdxHeader {
  std::vector<std::int64_t> shape;  // all dimensions, each at least 1
  std::size_t data_begin = 0;       // start of the values, which extend to the end of the file
};

// Parses the untrusted bytes of a whole file; `path` names it in errors. kData if it is not an IDX
// file of bytes with that many dimensions, or its length contradicts its header.
[[nodiscard]] Result<IdxHeader> parse_idx(std::span<const std::byte> file,
                                          std::size_t dimensions,
                                          const std::string& path);

// Whether the folder has training images of this format, by their names.
[[nodiscard]] bool holds_idx(const std::filesystem::path& folder);

// Mapped, not loaded. kData if a file is missing or damaged, or the files do not match. REQUIRES:
// holds_idx(folder).
[[nodiscard]] Result<ExampleFiles> open_idx_folder(const std::filesystem::path& folder);

// Whether the folder has images of this format, for training or held out.
[[nodiscard]] bool holds_idx_held_out(const std::filesystem::path& folder);

// The folder as a held-out set: its held-out images, or else all of its images, as the result's
// `train`. Errors as open_idx_folder. REQUIRES: holds_idx_held_out(folder).
[[nodiscard]] Result<ExampleFiles> open_idx_held_out(const std::filesystem::path& folder);

}  // namespace motley
