// Crops a picture's centre to a model's aspect ratio and scales it. Computed in integers and
// rounded once, so that the bytes are the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/pictures/raster.h"

namespace motley {

// Writes channels × height × width bytes, channel by channel, from the largest centred crop of that
// aspect ratio. Where a side shrinks, a pixel is the mean of the area that it covers; where it
// grows, pixels are interpolated linearly. REQUIRES: a picture of 1 to 2^27 pixels, new sides from
// 1 to 2^16; `planes` has that many bytes.
void fit_picture(const Raster& picture,
                 std::int64_t height,
                 std::int64_t width,
                 std::span<std::byte> planes);

}  // namespace motley
