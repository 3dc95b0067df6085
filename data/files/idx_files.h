// IDX files, the format of MNIST and those made after it: images and labels in a file each.
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
  std::size_t data_begin = 0;       // where the bytes follow, to the end of the file
};

// From the bytes of a whole file, which are not trusted; `path` names it in errors. kData when it
// is not one of bytes with so many dimensions, or not as long as its header says.
[[nodiscard]] Result<IdxHeader> parse_idx(std::span<const std::byte> file,
                                          std::size_t dimensions,
                                          const std::string& path);

// Whether the folder holds training images of this format, by their names.
[[nodiscard]] bool holds_idx(const std::filesystem::path& folder);

// Mapped, not loaded. kData when a file is missing or damaged, or when they do not go together.
// REQUIRES: holds_idx(folder).
[[nodiscard]] Result<ExampleFiles> open_idx_folder(const std::filesystem::path& folder);

}  // namespace motley
