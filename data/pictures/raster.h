// Raster: a decoded picture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace motley {

// Rows from the top, pixels from the left, channels interleaved, one byte each.
struct Raster {
  std::int64_t width = 0;
  std::int64_t height = 0;
  int channels = 0;  // 1 = grey, 3 = red, green, blue
  std::vector<std::byte> pixels;
};

// Width × height pixels of `samples` bytes each.
[[nodiscard]] inline std::size_t pixel_bytes(std::int64_t width, std::int64_t height, int samples) {
  return static_cast<std::size_t>(width) * static_cast<std::size_t>(height) *
         static_cast<std::size_t>(samples);
}

inline constexpr int kRgbaBytes = 4;  // of a pixel of red, green, blue and opacity

// The picture of red, green, blue and opacity, mixed with black where it is transparent. Grey is
// ITU-R 601's luma. REQUIRES: kRgbaBytes for each pixel; channels is 1 or 3.
[[nodiscard]] Raster raster_of_rgba(std::int64_t width,
                                    std::int64_t height,
                                    int channels,
                                    std::span<const std::byte> rgba);

// One pixel of raster_of_rgba without transparency: writes `channels` bytes.
void write_pixel(std::span<std::byte> pixel, unsigned red, unsigned green, unsigned blue);

// The picture as seen, from its EXIF orientation; 1 and other values than 2 to 8 change nothing.
[[nodiscard]] Raster oriented(Raster raster, int orientation);

}  // namespace motley
