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

}  // namespace motley
