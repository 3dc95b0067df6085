// The binary versions of CIFAR-10 and CIFAR-100: records of an image's labels and pixels.
// docs/formats/data.md.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "data/files/columns.h"

namespace motley {

// Whether the folder has training images of one version, by their names.
[[nodiscard]] bool holds_cifar(const std::filesystem::path& folder);

// Mapped, not loaded; uses the fine one of CIFAR-100's two labels. kData if a file is missing or is
// not a whole number of images. REQUIRES: holds_cifar(folder).
[[nodiscard]] Result<ExampleFiles> open_cifar_folder(const std::filesystem::path& folder);

// Whether the folder has images of one version, for training or held out.
[[nodiscard]] bool holds_cifar_held_out(const std::filesystem::path& folder);

// The folder as a held-out set: its test images, or else all of its images, as the result's
// `train`. Errors as open_cifar_folder. REQUIRES: holds_cifar_held_out(folder).
[[nodiscard]] Result<ExampleFiles> open_cifar_held_out(const std::filesystem::path& folder);

}  // namespace motley
