#include "data/pictures/picture_orientation.h"

#include <cstdint>
#include <optional>
#include <string_view>

#include "data/pictures/png_chunks.h"

namespace motley {
namespace {

// Reads numbers of either byte order; those outside are 0.
class Numbers {
 public:
  Numbers(std::span<const std::byte> bytes, bool is_little)
      : bytes_(bytes), is_little_(is_little) {}

  [[nodiscard]] std::uint64_t at(std::size_t offset, std::size_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) return 0;
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t place = is_little_ ? offset + size - 1 - i : offset + i;
      value = value << 8 | std::to_integer<std::uint64_t>(bytes_[place]);
    }
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  bool is_little_;
};

bool begins(std::span<const std::byte> bytes, std::string_view with) {
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())
      .starts_with(with);
}

using std::string_view_literals::operator""sv;

constexpr std::span<const std::byte> kNoExif;

// EXIF data is a TIFF file: a header and a directory of tags.
int orientation_of_exif(std::span<const std::byte> exif) {
  constexpr std::uint64_t kOrientation = 0x0112;
  constexpr std::uint64_t kShort = 3;
  constexpr std::size_t kTagBytes = 12;
  if (begins(exif, "Exif\0\0"sv)) exif = exif.subspan(6);
  const bool is_little = begins(exif, "II*\0"sv);
  if (!is_little && !begins(exif, "MM\0*"sv)) return 1;
  const Numbers numbers(exif, is_little);
  const auto directory = static_cast<std::size_t>(numbers.at(4, 4));
  const std::uint64_t tags = numbers.at(directory, 2);
  for (std::size_t tag = 0; tag < tags; ++tag) {
    const std::size_t at = directory + 2 + tag * kTagBytes;
    if (numbers.at(at, 2) != kOrientation) continue;
    const std::uint64_t value = numbers.at(at + 8, 2);
    const bool is_valid = numbers.at(at + 2, 2) == kShort && value >= 1 && value <= 8;
    return is_valid ? static_cast<int>(value) : 1;
  }
  return 1;
}

// The bytes of [offset, offset + size), if they are inside.
std::optional<std::span<const std::byte>> part(std::span<const std::byte> file,
                                               std::size_t offset,
                                               std::uint64_t size) {
  if (offset > file.size() || size > file.size() - offset) return std::nullopt;
  return file.subspan(offset, static_cast<std::size_t>(size));
}

std::span<const std::byte> exif_of_jpeg(std::span<const std::byte> file) {
  constexpr std::uint64_t kExif = 0xFFE1;  // APP1
  constexpr std::uint64_t kStartOfScan = 0xFFDA;
  const Numbers numbers(file, false);
  for (std::size_t at = 2; at < file.size();) {
    const std::uint64_t marker = numbers.at(at, 2);
    if (marker == 0xFFFF) {  // filled
      ++at;
      continue;
    }
    const std::uint64_t size = numbers.at(at + 2, 2);
    if (marker < 0xFF00 || marker == kStartOfScan || size < 2) return {};
    const auto content = part(file, at + 4, size - 2);
    if (!content) return {};
    if (marker == kExif && begins(*content, "Exif\0\0"sv)) return *content;
    at += 2 + static_cast<std::size_t>(size);
  }
  return {};
}

std::span<const std::byte> exif_of_webp(std::span<const std::byte> file) {
  constexpr std::size_t kFirstChunk = 12;
  constexpr std::size_t kHeadBytes = 8;
  const Numbers numbers(file, true);
  for (std::size_t at = kFirstChunk; at < file.size();) {
    const auto content = part(file, at + kHeadBytes, numbers.at(at + 4, 4));
    if (!content) return {};
    if (begins(file.subspan(at), "EXIF"sv)) return *content;
    at += kHeadBytes + content->size() + content->size() % 2;
  }
  return {};
}

}  // namespace

int picture_orientation(std::span<const std::byte> file, PictureFormat format) {
  switch (format) {
    case PictureFormat::kJpeg:
      return orientation_of_exif(exif_of_jpeg(file));
    case PictureFormat::kPng:
      return orientation_of_exif(find_png_chunk(file, "eXIf").value_or(kNoExif));
    case PictureFormat::kWebp:
      return orientation_of_exif(exif_of_webp(file));
    case PictureFormat::kGif:
    case PictureFormat::kTiff:
    case PictureFormat::kBmp:
      break;
  }
  return 1;
}

}  // namespace motley
