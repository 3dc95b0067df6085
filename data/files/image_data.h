// data.kind = "images": whichever of the known forms a folder of images has.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "base/result.h"
#include "base/work_counter.h"
#include "data/files/columns.h"

namespace motley {

// `shape` is the model's input, to whose size pictures are brought; images of the other forms stay
// as they are. kData when the folder holds none, or as its form's header says.
// `work` counts what is read; nullptr: nobody does.
[[nodiscard]] Result<ExampleFiles> open_image_data(const std::filesystem::path& folder,
                                                   std::span<const std::int64_t> shape,
                                                   WorkCounter* work);

}  // namespace motley
