// The properties of picture files, and a valid one.
#pragma once

#include <string>
#include <string_view>

#include "data/pictures/decode_picture.h"
#include "tests/fuzz/laws.h"

namespace motley {

inline constexpr std::int64_t kFuzzedPixelsMax = 1 << 16;

// Two pixels without compression.
inline std::string right_bmp() {
  std::string file("BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x02\0\0\0\x01\0\0\0\x01\0\x18\0", 30);
  return file + std::string(24, '\0') + std::string("\x01\x02\x03\x04\x05\x06\0\0", 8);
}

// A picture that is read has as many pixels as its size says, within the limit, in every number of
// channels, and twice the same.
inline std::string wrong_with_picture(std::string_view file) {
  for (const int channels : {1, 3}) {
    const auto read = [&] {
      return decode_picture(std::as_bytes(std::span(file)), channels, "a.picture",
                            kFuzzedPixelsMax);
    };
    const auto picture = read();
    if (!picture.ok()) {
      const std::string wrong = wrong_error(picture.error(), {ErrorCode::kData}, "a.picture");
      if (!wrong.empty()) return wrong;
      continue;
    }
    const Raster& raster = picture->raster;
    if (raster.channels != channels) return "other channels";
    if (raster.width < 1 || raster.height < 1 || raster.width * raster.height > kFuzzedPixelsMax ||
        raster.pixels.size() != pixel_bytes(raster.width, raster.height, channels)) {
      return "another size than its pixels";
    }
    const auto again = read();
    if (!again.ok() || again->raster.pixels != raster.pixels) return "read twice, and not the same";
  }
  return "";
}

}  // namespace motley
