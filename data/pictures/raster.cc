#include "data/pictures/raster.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace motley {
namespace {

// value × share / 255, rounded.
unsigned mixed_with_black(std::byte value, unsigned share) {
  constexpr unsigned kWhole = 255;
  return (2 * std::to_integer<unsigned>(value) * share + kWhole) / (2 * kWhole);
}

// How EXIF's orientations show a stored picture. First rows and columns change places, then the
// rows, the columns or both are reversed.
struct Turn {
  bool is_transposed = false;
  bool reverses_rows = false;
  bool reverses_columns = false;
};

constexpr Turn kTurns[] = {
    {},                    // 1
    {false, false, true},  // 2: mirrored
    {false, true, true},   // 3: rotated by half a turn
    {false, true, false},  // 4: upside down
    {true, false, false},  // 5: transposed
    {true, false, true},   // 6: rotated clockwise
    {true, true, true},    // 7: transposed at the other diagonal
    {true, true, false},   // 8: rotated counter-clockwise
};

}  // namespace

void write_pixel(std::span<std::byte> pixel, unsigned red, unsigned green, unsigned blue) {
  if (pixel.size() == 1) {
    // 0.299, 0.587 and 0.114 in 1/65536.
    pixel[0] = static_cast<std::byte>((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16);
    return;
  }
  pixel[0] = static_cast<std::byte>(red);
  pixel[1] = static_cast<std::byte>(green);
  pixel[2] = static_cast<std::byte>(blue);
}

Raster raster_of_rgba(std::int64_t width,
                      std::int64_t height,
                      int channels,
                      std::span<const std::byte> rgba) {
  MOTLEY_CHECK(rgba.size() == pixel_bytes(width, height, kRgbaBytes), "{} bytes for {} x {}",
               rgba.size(), width, height);
  Raster raster{width, height, channels, {}};
  raster.pixels.resize(pixel_bytes(width, height, channels));
  const auto step = static_cast<std::size_t>(channels);
  for (std::size_t pixel = 0; pixel < rgba.size() / kRgbaBytes; ++pixel) {
    const auto from = rgba.subspan(pixel * kRgbaBytes, kRgbaBytes);
    const auto share = std::to_integer<unsigned>(from[3]);
    write_pixel(std::span(raster.pixels).subspan(pixel * step, step),
                mixed_with_black(from[0], share), mixed_with_black(from[1], share),
                mixed_with_black(from[2], share));
  }
  return raster;
}

Raster oriented(Raster raster, int orientation) {
  if (orientation < 2 || orientation > std::ssize(kTurns)) return raster;
  const Turn turn = kTurns[orientation - 1];
  Raster seen{raster.width, raster.height, raster.channels, {}};
  if (turn.is_transposed) std::swap(seen.width, seen.height);
  seen.pixels.resize(raster.pixels.size());
  const auto step = static_cast<std::size_t>(raster.channels);
  std::size_t to = 0;
  for (std::int64_t y = 0; y < seen.height; ++y) {
    for (std::int64_t x = 0; x < seen.width; ++x, to += step) {
      const std::int64_t row = turn.reverses_rows ? seen.height - 1 - y : y;
      const std::int64_t column = turn.reverses_columns ? seen.width - 1 - x : x;
      const std::int64_t from =
          turn.is_transposed ? column * raster.width + row : row * raster.width + column;
      std::ranges::copy(
          std::span(raster.pixels).subspan(static_cast<std::size_t>(from) * step, step),
          seen.pixels.begin() + static_cast<std::ptrdiff_t>(to));
    }
  }
  return seen;
}

}  // namespace motley
