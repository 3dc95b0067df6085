#include "data/pictures/decode_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "data/pictures/picture_decoders.h"
#include "data/pictures/picture_orientation.h"

namespace motley {
namespace {

using std::string_view_literals::operator""sv;

using Decoder = Result<DecodedPicture> (*)(const PictureFile& file);

// nullptr: this build has no library for it.
#ifdef MOTLEY_WITH_PNG
constexpr Decoder kDecodePng = decode_png;
#else
constexpr Decoder kDecodePng = nullptr;
#endif
#ifdef MOTLEY_WITH_JPEG
constexpr Decoder kDecodeJpeg = decode_jpeg;
#else
constexpr Decoder kDecodeJpeg = nullptr;
#endif
#ifdef MOTLEY_WITH_WEBP
constexpr Decoder kDecodeWebp = decode_webp;
#else
constexpr Decoder kDecodeWebp = nullptr;
#endif
#ifdef MOTLEY_WITH_GIF
constexpr Decoder kDecodeGif = decode_gif;
#else
constexpr Decoder kDecodeGif = nullptr;
#endif
#ifdef MOTLEY_WITH_TIFF
constexpr Decoder kDecodeTiff = decode_tiff;
#else
constexpr Decoder kDecodeTiff = nullptr;
#endif

struct FormatEntry {
  PictureFormat format;
  const char* name;
  Decoder decode;
  const char* package;  // of its library
};

constexpr FormatEntry kFormats[] = {
    {PictureFormat::kPng, "PNG", kDecodePng, "libpng-dev"},
    {PictureFormat::kJpeg, "JPEG", kDecodeJpeg, "libjpeg-dev"},
    {PictureFormat::kWebp, "WebP", kDecodeWebp, "libwebp-dev"},
    {PictureFormat::kGif, "GIF", kDecodeGif, "libgif-dev"},
    {PictureFormat::kTiff, "TIFF", kDecodeTiff, "libtiff-dev"},
    {PictureFormat::kBmp, "BMP", decode_bmp, ""},
};

const FormatEntry& entry_of(PictureFormat format) {
  return *std::ranges::find(kFormats, format, &FormatEntry::format);
}

// First bytes of files; `skipped` of them, such as a length, may have any value.
struct Magic {
  std::string_view begin;
  std::size_t skipped;
  std::string_view then;
};

struct KnownMagic {
  Magic magic;
  PictureFormat format;
};

constexpr KnownMagic kMagics[] = {
    {{"\x89PNG\r\n\x1A\n"sv, 0, ""sv}, PictureFormat::kPng},
    {{"\xFF\xD8\xFF"sv, 0, ""sv}, PictureFormat::kJpeg},
    {{"RIFF"sv, 4, "WEBP"sv}, PictureFormat::kWebp},
    {{"GIF87a"sv, 0, ""sv}, PictureFormat::kGif},
    {{"GIF89a"sv, 0, ""sv}, PictureFormat::kGif},
    {{"II*\0"sv, 0, ""sv}, PictureFormat::kTiff},
    {{"MM\0*"sv, 0, ""sv}, PictureFormat::kTiff},
    {{"II+\0"sv, 0, ""sv}, PictureFormat::kTiff},
    {{"MM\0+"sv, 0, ""sv}, PictureFormat::kTiff},
    // "BM" alone also begins texts: the length of the second header follows at byte 14.
    {{"BM"sv, 12, "\x0C\0\0\0"sv}, PictureFormat::kBmp},
    {{"BM"sv, 12, "\x10\0\0\0"sv}, PictureFormat::kBmp},
    {{"BM"sv, 12, "\x28\0\0\0"sv}, PictureFormat::kBmp},
    {{"BM"sv, 12, "\x34\0\0\0"sv}, PictureFormat::kBmp},
    {{"BM"sv, 12, "\x38\0\0\0"sv}, PictureFormat::kBmp},
    {{"BM"sv, 12, "\x40\0\0\0"sv}, PictureFormat::kBmp},
    {{"BM"sv, 12, "\x6C\0\0\0"sv}, PictureFormat::kBmp},
    {{"BM"sv, 12, "\x7C\0\0\0"sv}, PictureFormat::kBmp},
};

struct UnreadMagic {
  Magic magic;
  const char* name;
};

constexpr UnreadMagic kUnreadMagics[] = {
    {{""sv, 4, "ftypavif"sv}, "AVIF"},
    {{""sv, 4, "ftypheic"sv}, "HEIC"},
    {{""sv, 4, "ftypheix"sv}, "HEIC"},
    {{""sv, 4, "ftypmif1"sv}, "HEIF"},
    {{"\0\0\0\x0CjP  \r\n\x87\n"sv, 0, ""sv}, "JPEG 2000"},
    {{"\xFF\x4F\xFF\x51"sv, 0, ""sv}, "JPEG 2000"},
    {{"\xFF\x0A"sv, 0, ""sv}, "JPEG XL"},
    {{"\0\0\0\x0CJXL \r\n\x87\n"sv, 0, ""sv}, "JPEG XL"},
    {{"8BPS"sv, 0, ""sv}, "Photoshop"},
    {{"P5\n"sv, 0, ""sv}, "PGM"},
    {{"P6\n"sv, 0, ""sv}, "PPM"},
    {{"v/1\x01"sv, 0, ""sv}, "OpenEXR"},
};

bool fits(const Magic& magic, std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const std::size_t then = magic.begin.size() + magic.skipped;
  return text.starts_with(magic.begin) && text.size() >= then &&
         text.substr(then).starts_with(magic.then);
}

Error unknown_format(const PictureFile& file) {
  const std::string name = unread_picture_format(file.bytes);
  if (file.bytes.empty()) return damaged_picture(file, "it is empty");
  if (name.empty()) return damaged_picture(file, "it begins like no picture of a known format");
  return damaged_picture(file,
                         fmt::format("{} files are not read: convert it to PNG or JPEG", name));
}

Error no_library(const PictureFile& file, const FormatEntry& entry) {
  return {
      ErrorCode::kData, fmt::format("cannot read {}", file.path),
      fmt::format("this build of motley has no library for {} files", entry.name),
      fmt::format("apt-get install {}, then build again; or convert the pictures", entry.package)};
}

}  // namespace

Error damaged_picture(const PictureFile& file, const std::string& cause) {
  return {ErrorCode::kData, fmt::format("unusable picture {}", file.path), cause,
          "convert it again, or remove it"};
}

Result<void> check_picture_size(const PictureFile& file, std::int64_t width, std::int64_t height) {
  if (width >= 1 && height >= 1 && width <= file.pixels_max / height) return {};
  return damaged_picture(file, fmt::format("it has {} x {} pixels; the limit is {} pixels", width,
                                           height, file.pixels_max));
}

std::optional<PictureFormat> picture_format(std::span<const std::byte> beginning) {
  const auto* const found = std::ranges::find_if(
      kMagics, [&](const KnownMagic& known) { return fits(known.magic, beginning); });
  return found == std::end(kMagics) ? std::nullopt : std::optional(found->format);
}

std::string unread_picture_format(std::span<const std::byte> beginning) {
  const auto* const found = std::ranges::find_if(
      kUnreadMagics, [&](const UnreadMagic& unread) { return fits(unread.magic, beginning); });
  return found == std::end(kUnreadMagics) ? "" : found->name;
}

bool has_picture_library(std::span<const std::byte> beginning) {
  const auto format = picture_format(beginning);
  return !format || entry_of(*format).decode != nullptr;
}

Result<DecodedPicture> decode_picture(std::span<const std::byte> bytes,
                                      int channels,
                                      const std::string& path,
                                      std::int64_t pixels_max) {
  const PictureFile file{bytes, channels, path, pixels_max};
  const auto format = picture_format(bytes);
  if (!format) return unknown_format(file);
  const FormatEntry& entry = entry_of(*format);
  if (entry.decode == nullptr) return no_library(file, entry);
  MOTLEY_ASSIGN(DecodedPicture picture, entry.decode(file));
  picture.raster = oriented(std::move(picture.raster), picture_orientation(bytes, *format));
  return picture;
}

}  // namespace motley
