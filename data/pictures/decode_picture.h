// decode_picture: reads picture files of the usual formats, by the libraries of these formats.
// Decision 0064.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "data/pictures/raster.h"

namespace motley {

enum class PictureFormat { kPng, kJpeg, kWebp, kGif, kTiff, kBmp };

// By the first kPictureMagicBytes of a file, whatever its name; nullopt if it is none of them.
[[nodiscard]] std::optional<PictureFormat> picture_format(std::span<const std::byte> beginning);

inline constexpr std::size_t kPictureMagicBytes = 32;

// The name of a format of pictures that is not read, such as "HEIC"; empty if the file
// begins like none of them.
[[nodiscard]] std::string unread_picture_format(std::span<const std::byte> beginning);

// False if this build has no library for the format of the file, which begins like this.
[[nodiscard]] bool has_picture_library(std::span<const std::byte> beginning);

// A larger picture is rejected before memory is allocated for it.
inline constexpr std::int64_t kPixelsMax = std::int64_t{1} << 27;

struct DecodedPicture {
  Raster raster;
  // JPEG: there are bytes other than zeros before a marker that belong to nothing. Usually they are
  // harmless, but damage that leaves a valid picture looks the same.
  bool has_stray_bytes = false;
};

// Decodes a file, recognised by its first bytes, turns it as its EXIF orientation says and converts
// its colours to `channels`. Of several pictures in a file the first one counts. kData if its
// format is not read, or not by this build, or if it is damaged or larger than `pixels_max`; `path`
// names it. A JPEG without an end marker is read if nothing else is missing. The same bytes give
// the same pixels on every processor, for equal library versions. Safe to call from several
// threads. REQUIRES: channels is 1 or 3.
[[nodiscard]] Result<DecodedPicture> decode_picture(std::span<const std::byte> file,
                                                    int channels,
                                                    const std::string& path,
                                                    std::int64_t pixels_max = kPixelsMax);

}  // namespace motley
