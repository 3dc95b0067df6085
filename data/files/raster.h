// Raster: a decoded picture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace motley {

// Rows from the top, pixels from the left, channels interleaved, one byte each.
struct Raster {
  std::int64_t width = 0;
  std::int64_t height = 0;
  int channels = 0;  // 1 = grey, 3 = red, green, blue
  std::vector<std::byte> pixels;
};

// A larger picture is rejected before memory is allocated for it.
inline constexpr std::int64_t kPixelsMax = std::int64_t{1} << 27;

// Decodes a PNG or JPEG file, recognised by its first bytes, and converts its colours to
// `channels`. kData if it is neither, damaged or too large, or if this build has no library for it;
// `path` names it. The same bytes give the same pixels for equal library versions. REQUIRES:
// channels is 1 or 3.
[[nodiscard]] Result<Raster> decode_picture(std::span<const std::byte> file,
                                            int channels,
                                            const std::string& path);

// Called by decode_picture if the build has the libraries.
[[nodiscard]] Result<Raster> decode_png(std::span<const std::byte> file,
                                        int channels,
                                        const std::string& path);
[[nodiscard]] Result<Raster> decode_jpeg(std::span<const std::byte> file,
                                         int channels,
                                         const std::string& path);

// The error for a picture that cannot be decoded.
[[nodiscard]] Error damaged_picture(const std::string& path, const std::string& cause);

// An error unless both sizes are at least 1 and their product is at most kPixelsMax.
[[nodiscard]] Result<void> check_picture_size(std::int64_t width,
                                              std::int64_t height,
                                              const std::string& path);

}  // namespace motley
