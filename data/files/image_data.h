// data.kind = "images": detects the form of a folder of images.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "base/progress_counter.h"
#include "base/result.h"
#include "data/files/columns.h"

namespace motley {

// `shape` is the model's input, to which pictures are scaled; images of other forms are not scaled.
// `skips_damaged`: pictures that cannot be decoded are left out.
// kData if the folder has no images, or as its form's header describes. `work` counts what is read;
// nullptr: not counted.
[[nodiscard]] Result<ExampleFiles> open_image_data(const std::filesystem::path& folder,
                                                   std::span<const std::int64_t> shape,
                                                   bool skips_damaged,
                                                   ProgressCounter* work);

// The images of `folder` as a held-out set for training on those of `train_folder`, as the result's
// `train`: its own held-out part, or else all of them. The classes of pictures are those of the
// training pictures, by name. kData also if the two folders have different forms, or a class has no
// training pictures.
[[nodiscard]] Result<ExampleFiles> open_held_out_images(const std::filesystem::path& folder,
                                                        const std::filesystem::path& train_folder,
                                                        std::span<const std::int64_t> shape,
                                                        bool skips_damaged,
                                                        ProgressCounter* work);

}  // namespace motley
