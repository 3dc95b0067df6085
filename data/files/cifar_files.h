// The binary versions of CIFAR-10 and CIFAR-100: labels and pixels of an image behind each other,
// one image after the other. docs/formats/data.md.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "data/files/columns.h"

namespace motley {

// Whether the folder holds training images of one of them, by their names.
[[nodiscard]] bool holds_cifar(const std::filesystem::path& folder);

// Mapped, not loaded; of CIFAR-100's two labels the fine one. kData when a file is missing or is
// not a whole number of images. REQUIRES: holds_cifar(folder).
[[nodiscard]] Result<ExampleFiles> open_cifar_folder(const std::filesystem::path& folder);

}  // namespace motley
