// The decoders of decode_picture, one for each format. Each exists if the build has its library.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "data/pictures/decode_picture.h"

namespace motley {

// One picture file. Untrusted.
struct PictureFile {
  std::span<const std::byte> bytes;
  int channels = 0;  // wanted: 1 or 3
  std::string path;  // for errors
  std::int64_t pixels_max = 0;
};

// The error for a file that cannot be decoded. kData.
[[nodiscard]] Error damaged_picture(const PictureFile& file, const std::string& cause);

// An error unless both sizes are at least 1 and their product is at most pixels_max.
[[nodiscard]] Result<void> check_picture_size(const PictureFile& file,
                                              std::int64_t width,
                                              std::int64_t height);

// What decode_picture describes, as stored: without the orientation that EXIF data of a PNG, JPEG
// or WebP file describes.
[[nodiscard]] Result<DecodedPicture> decode_png(const PictureFile& file);
[[nodiscard]] Result<DecodedPicture> decode_jpeg(const PictureFile& file);
[[nodiscard]] Result<DecodedPicture> decode_webp(const PictureFile& file);
[[nodiscard]] Result<DecodedPicture> decode_gif(const PictureFile& file);
[[nodiscard]] Result<DecodedPicture> decode_tiff(const PictureFile& file);
[[nodiscard]] Result<DecodedPicture> decode_bmp(const PictureFile& file);

}  // namespace motley
