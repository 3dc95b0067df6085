#include "data/pictures/png_chunks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace motley {
namespace {

constexpr std::size_t kSignatureBytes = 8;
constexpr std::size_t kChunkHeadBytes = 8;  // length and type
constexpr std::size_t kChecksumBytes = 4;

// Chunks that change no pixel, or that libpng checks itself.
constexpr std::string_view kUnchecked[] = {"IDAT", "tEXt", "zTXt", "iTXt", "tIME"};

struct Chunk {
  std::string_view type;
  std::span<const std::byte> content;
  std::span<const std::byte> checked;  // type and content
  std::uint32_t checksum = 0;
  std::size_t end = 0;  // in the file
};

std::uint32_t big_endian_at(std::span<const std::byte> file, std::size_t offset) {
  std::uint32_t value = 0;
  for (const std::byte next : file.subspan(offset, 4)) {
    value = value << 8 | std::to_integer<std::uint32_t>(next);
  }
  return value;
}

// The chunk that begins at `offset`; nullopt if it is not complete.
std::optional<Chunk> chunk_at(std::span<const std::byte> file, std::size_t offset) {
  if (file.size() < offset + kChunkHeadBytes + kChecksumBytes) return std::nullopt;
  const std::size_t length = big_endian_at(file, offset);
  if (length > file.size() - offset - kChunkHeadBytes - kChecksumBytes) return std::nullopt;
  const auto checked = file.subspan(offset + 4, 4 + length);
  return Chunk{{reinterpret_cast<const char*>(checked.data()), 4},
               checked.subspan(4),
               checked,
               big_endian_at(file, offset + kChunkHeadBytes + length),
               offset + kChunkHeadBytes + length + kChecksumBytes};
}

std::uint32_t crc_32(std::span<const std::byte> bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const std::byte value : bytes) {
    crc ^= std::to_integer<std::uint32_t>(value);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xEDB88320 : 0);
  }
  return ~crc;
}

}  // namespace

std::optional<std::span<const std::byte>> find_png_chunk(std::span<const std::byte> file,
                                                         std::string_view type) {
  for (auto chunk = chunk_at(file, kSignatureBytes); chunk; chunk = chunk_at(file, chunk->end)) {
    if (chunk->type == type) return chunk->content;
    if (chunk->type == "IEND") break;
  }
  return std::nullopt;
}

std::string damage_of_png_chunks(std::span<const std::byte> file) {
  std::size_t offset = kSignatureBytes;
  while (const auto chunk = chunk_at(file, offset)) {
    const bool is_checked = std::ranges::find(kUnchecked, chunk->type) == std::end(kUnchecked);
    if (is_checked && crc_32(chunk->checked) != chunk->checksum) {
      return fmt::format("the checksum of one of its chunks is wrong, at byte {}", offset);
    }
    if (chunk->type == "IEND") return "";
    offset = chunk->end;
  }
  const auto rest = file.subspan(offset);
  const std::string_view text(reinterpret_cast<const char*>(rest.data()), rest.size());
  using std::string_view_literals::operator""sv;
  const bool is_end = text.starts_with("\0\0\0\0IEND"sv) || "\0\0\0\0IEND"sv.starts_with(text);
  return is_end ? "" : "one of its chunks is not complete";
}

}  // namespace motley
