// ImagePlanes: an image in floats while it is augmented. The arithmetic has the same bits on every
// machine: IEEE operations in a fixed order.
#pragma once

#include <cstdint>
#include <vector>

#include "data/augmentation/image_view.h"

namespace motley {

struct ImagePlanes {
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<float> values;  // row by row, channel by channel
};

// `box` at the size of the whole image: interpolated linearly between pixel centres; its edges
// continue outwards. REQUIRES: the box is inside the image, at least one pixel.
[[nodiscard]] ImagePlanes resized(const ImagePlanes& image, const ImageBox& box);

// The shift and the mirroring of a view; 0 outside the image.
[[nodiscard]] ImagePlanes shifted(const ImagePlanes& image, const ImageView& view);

// In their order: brightness multiplies values, contrast their distance from the mean grey of the
// image, saturation their distance from the pixel's own grey; after each, values are limited to 0 …
// 1. Grey is 0.2989 red + 0.587 green + 0.114 blue. REQUIRES: one channel, which is grey, or three.
void change_colours(ImagePlanes& image, const ColourFactors& colours);

}  // namespace motley
