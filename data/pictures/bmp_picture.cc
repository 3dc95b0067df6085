// BMP files of Windows and OS/2. No library of Debian reads them alone.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "data/pictures/picture_decoders.h"

namespace motley {
namespace {

constexpr std::size_t kFileHeaderBytes = 14;
constexpr std::uint32_t kCoreHeaderBytes =
    12;  // of OS/2 1.x: sizes of 16 bits, three bytes a colour

enum Compression : std::uint32_t { kPlain = 0, kRle8 = 1, kRle4 = 2, kMasks = 3, kAlphaMasks = 6 };

struct Colour {
  std::byte red{};
  std::byte green{};
  std::byte blue{};
};

class LittleEndian {
 public:
  explicit LittleEndian(std::span<const std::byte> bytes) : bytes_(bytes) {}

  // A number of `size` bytes; 0 if it is not inside.
  [[nodiscard]] std::uint32_t at(std::size_t offset, std::size_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) return 0;
    std::uint32_t value = 0;
    for (std::size_t i = size; i-- > 0;) {
      value = value << 8 | std::to_integer<std::uint32_t>(bytes_[offset + i]);
    }
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
};

struct BmpHeader {
  std::int64_t width = 0;
  std::int64_t height = 0;
  bool is_from_top = false;
  std::uint32_t bits = 0;  // of a pixel
  std::uint32_t compression = kPlain;
  std::array<std::uint32_t, 3> masks{};  // of red, green and blue; of 16 and 32 bits
  std::vector<Colour> palette;           // up to 8 bits
  std::size_t data_begin = 0;
};

bool is_known(const BmpHeader& header) {
  switch (header.compression) {
    case kPlain:
      return header.bits == 1 || header.bits == 2 || header.bits == 4 || header.bits == 8 ||
             header.bits == 16 || header.bits == 24 || header.bits == 32;
    case kRle8:
      return header.bits == 8;
    case kRle4:
      return header.bits == 4;
    case kMasks:
    case kAlphaMasks:
      return header.bits == 16 || header.bits == 32;
    default:
      return false;
  }
}

// The masks of red, green and blue, which follow a short header and are part of a longer one.
std::array<std::uint32_t, 3> masks_of(const BmpHeader& header, const LittleEndian& numbers) {
  constexpr std::size_t kMasksBegin = kFileHeaderBytes + 40;
  if (header.compression == kMasks || header.compression == kAlphaMasks) {
    return {numbers.at(kMasksBegin, 4), numbers.at(kMasksBegin + 4, 4),
            numbers.at(kMasksBegin + 8, 4)};
  }
  if (header.bits == 16) return {0x7C00, 0x03E0, 0x001F};
  return {0xFF0000, 0xFF00, 0xFF};
}

Result<BmpHeader> read_header(const PictureFile& file) {
  const LittleEndian numbers(file.bytes);
  const std::uint32_t header_bytes = numbers.at(kFileHeaderBytes, 4);
  const bool is_core = header_bytes == kCoreHeaderBytes;
  const std::size_t side_bytes = is_core ? 2 : 4;
  const std::size_t sizes_end = kFileHeaderBytes + 4 + 2 * side_bytes;
  BmpHeader header;
  header.width = numbers.at(kFileHeaderBytes + 4, side_bytes);
  header.height = numbers.at(kFileHeaderBytes + 4 + side_bytes, side_bytes);
  if (!is_core) {
    header.width = static_cast<std::int32_t>(header.width);
    header.height = static_cast<std::int32_t>(header.height);
  }
  header.is_from_top = header.height < 0;
  if (header.is_from_top) header.height = -header.height;
  MOTLEY_TRY(check_picture_size(file, header.width, header.height));
  header.bits = numbers.at(sizes_end + 2, 2);
  // A header of 16 bytes ends here.
  if (header_bytes >= 40) header.compression = numbers.at(sizes_end + 4, 4);
  if (!is_known(header)) {
    return damaged_picture(file, "its form of BMP is not read: convert it to PNG");
  }
  header.masks = masks_of(header, numbers);
  header.data_begin = numbers.at(10, 4);
  if (header.data_begin < sizes_end || header.data_begin > file.bytes.size()) {
    return damaged_picture(file, "its pixels begin outside of the file");
  }
  if (header.bits > 8) return header;
  const std::size_t colour_bytes = is_core ? 3 : 4;
  const std::size_t masks_bytes = header_bytes == 40 && header.compression == kMasks ? 12 : 0;
  const std::size_t begin = kFileHeaderBytes + header_bytes + masks_bytes;
  std::size_t colours = header_bytes >= 40 ? numbers.at(kFileHeaderBytes + 32, 4) : 0;
  const std::size_t colours_max = std::size_t{1} << header.bits;
  if (colours == 0 || colours > colours_max) colours = colours_max;
  if (begin < header.data_begin) {
    colours = std::min(colours, (header.data_begin - begin) / colour_bytes);
  }
  for (std::size_t colour = 0; colour < colours; ++colour) {
    const std::size_t at = begin + colour * colour_bytes;
    header.palette.push_back({static_cast<std::byte>(numbers.at(at + 2, 1)),
                              static_cast<std::byte>(numbers.at(at + 1, 1)),
                              static_cast<std::byte>(numbers.at(at, 1))});
  }
  return header;
}

// The bits of a mask, spread over 0 to 255.
unsigned masked(std::uint32_t pixel, std::uint32_t mask) {
  if (mask == 0) return 0;
  const int shift = std::countr_zero(mask);
  const std::uint64_t most = mask >> shift;
  return static_cast<unsigned>(((pixel & mask) >> shift) * std::uint64_t{255} / most);
}

// Rows of palette indexes from compressed data, in the order of the file. nullopt: damaged.
std::optional<std::vector<std::byte>> expanded(const BmpHeader& header,
                                               std::span<const std::byte> data) {
  const auto width = static_cast<std::size_t>(header.width);
  const auto height = static_cast<std::size_t>(header.height);
  const bool has_halves = header.compression == kRle4;
  std::vector<std::byte> indexes(width * height);
  std::size_t x = 0;
  std::size_t y = 0;
  const auto put = [&](std::byte index) {
    if (x >= width || y >= height) return false;
    indexes[y * width + x++] = index;
    return true;
  };
  const auto half = [&](std::byte both, std::size_t number) {
    if (!has_halves) return both;
    return number % 2 == 0 ? both >> 4 : both & std::byte{15};
  };
  for (std::size_t at = 0; at + 2 <= data.size();) {
    const auto count = std::to_integer<std::size_t>(data[at]);
    const std::byte value = data[at + 1];
    at += 2;
    for (std::size_t i = 0; i < count; ++i) {
      if (!put(half(value, i))) return std::nullopt;
    }
    if (count > 0) continue;
    const auto code = std::to_integer<std::size_t>(value);
    if (code == 0) {  // end of the row
      x = 0;
      ++y;
    } else if (code == 1) {  // end of the picture
      return indexes;
    } else if (code == 2) {  // skipped pixels, of index 0
      if (at + 2 > data.size()) return std::nullopt;
      x += std::to_integer<std::size_t>(data[at]);
      y += std::to_integer<std::size_t>(data[at + 1]);
      at += 2;
    } else {  // `code` pixels follow, filled up to a multiple of two bytes
      const std::size_t bytes = has_halves ? (code + 1) / 2 : code;
      if (bytes + bytes % 2 > data.size() - at) return std::nullopt;
      for (std::size_t i = 0; i < code; ++i) {
        if (!put(half(data[at + (has_halves ? i / 2 : i)], i))) return std::nullopt;
      }
      at += bytes + bytes % 2;
    }
  }
  return std::nullopt;
}

// Pixel `x` of a row; nullopt: its index is outside of the palette. REQUIRES: it is inside `row`.
std::optional<Colour> colour_at(const BmpHeader& header,
                                std::span<const std::byte> row,
                                std::size_t x) {
  if (header.bits <= 8) {
    const std::size_t in_byte = 8 / header.bits;
    const auto shift = 8 - header.bits * (x % in_byte + 1);
    const auto all = std::to_integer<std::size_t>(row[x / in_byte]);
    const std::size_t index = all >> shift & ((std::size_t{1} << header.bits) - 1);
    if (index >= header.palette.size()) return std::nullopt;
    return header.palette[index];
  }
  const std::size_t size = header.bits / 8;
  const std::uint32_t pixel = LittleEndian(row).at(x * size, size);
  return Colour{static_cast<std::byte>(masked(pixel, header.masks[0])),
                static_cast<std::byte>(masked(pixel, header.masks[1])),
                static_cast<std::byte>(masked(pixel, header.masks[2]))};
}

}  // namespace

Result<DecodedPicture> decode_bmp(const PictureFile& file) {
  MOTLEY_ASSIGN(BmpHeader header, read_header(file));
  auto data = file.bytes.subspan(header.data_begin);
  std::vector<std::byte> indexes;
  const auto width = static_cast<std::size_t>(header.width);
  const auto height = static_cast<std::size_t>(header.height);
  std::size_t row_bytes = (width * header.bits + 31) / 32 * 4;
  if (header.compression == kRle8 || header.compression == kRle4) {
    auto rows = expanded(header, data);
    if (!rows) return damaged_picture(file, "its compressed pixels are not valid");
    indexes = *std::move(rows);
    data = indexes;
    row_bytes = width;
    header.bits = 8;
  }
  // The filling at the end of the last row may be missing.
  if (data.size() < (height - 1) * row_bytes + (width * header.bits + 7) / 8) {
    return damaged_picture(file, "it ends before its pixels");
  }
  Raster raster{header.width, header.height, file.channels, {}};
  raster.pixels.resize(pixel_bytes(header.width, header.height, file.channels));
  const auto step = static_cast<std::size_t>(file.channels);
  for (std::size_t row = 0; row < height; ++row) {
    const std::size_t y = header.is_from_top ? row : height - 1 - row;
    for (std::size_t x = 0; x < width; ++x) {
      const auto colour = colour_at(header, data.subspan(row * row_bytes), x);
      if (!colour) return damaged_picture(file, "it has colours outside of its palette");
      write_pixel(std::span(raster.pixels).subspan((y * width + x) * step, step),
                  std::to_integer<unsigned>(colour->red), std::to_integer<unsigned>(colour->green),
                  std::to_integer<unsigned>(colour->blue));
    }
  }
  return DecodedPicture{std::move(raster)};
}

}  // namespace motley
