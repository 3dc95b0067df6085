// Bringing a picture to a model's size: its middle, of the right shape, scaled. In whole numbers
// and rounded once, so that the bytes are the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/files/raster.h"

namespace motley {

// Writes channels × height × width bytes, channel after channel. Of the picture it takes the
// largest part of that shape in its middle. Where a side shrinks, a pixel is the mean of the area
// that it covers; where it grows, it lies between the two nearest on a straight line.
// REQUIRES: sides from 1 to 2^16; `planes` has that many bytes.
void fit_picture(const Raster& picture,
                 std::int64_t height,
                 std::int64_t width,
                 std::span<std::byte> planes);

}  // namespace motley
