// The orientation that EXIF data of a picture file describes.
#pragma once

#include <cstddef>
#include <span>

#include "data/pictures/decode_picture.h"

namespace motley {

// 1 to 8; 1 if the file has no EXIF data, or none that can be read. REQUIRES: `file` was decoded as
// that format. Of PNG, JPEG and WebP files; libtiff knows that of TIFF files.
[[nodiscard]] int picture_orientation(std::span<const std::byte> file, PictureFormat format);

}  // namespace motley
