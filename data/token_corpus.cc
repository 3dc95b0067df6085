#include <fmt/format.h>

#include <array>
#include <cstring>
#include <optional>

#include "data/corpus.h"

namespace motley {
namespace {

constexpr std::size_t kHeaderWords = 256;  // of int32
constexpr std::size_t kHeaderBytes = kHeaderWords * sizeof(std::int32_t);

// llm.c's two kinds of file.
struct HeaderKind {
  std::int32_t magic;
  std::int32_t version;
  Corpus::Width width;
};

constexpr std::array kHeaderKinds = {HeaderKind{20240520, 1, Corpus::Width::kUint16},
                                     HeaderKind{20240801, 7, Corpus::Width::kUint32}};

Error damaged(const std::string& path, const std::string& cause) {
  return {ErrorCode::kData, fmt::format("unusable token file {}", path), cause,
          "make the file again, or check that it was copied whole"};
}

std::int32_t word(std::span<const std::byte> bytes, std::size_t index) {
  std::int32_t value = 0;
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return value;
}

// nanoGPT's files have no header, so only the magic number tells the formats apart.
std::optional<HeaderKind> find_header(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(std::int32_t)) return std::nullopt;
  for (const HeaderKind& kind : kHeaderKinds) {
    if (word(bytes, 0) == kind.magic) return kind;
  }
  return std::nullopt;
}

Result<void> check_header(std::span<const std::byte> bytes,
                          const HeaderKind& kind,
                          const std::string& path) {
  if (bytes.size() < kHeaderBytes) {
    return damaged(
        path, fmt::format("{} bytes are less than the header's {}", bytes.size(), kHeaderBytes));
  }
  if (word(bytes, 1) != kind.version) {
    return damaged(path, fmt::format("its version is {}; magic number {} goes with version {}",
                                     word(bytes, 1), kind.magic, kind.version));
  }
  const std::int64_t count = word(bytes, 2);
  const std::uint64_t held = (bytes.size() - kHeaderBytes);
  if (count < 0 ||
      static_cast<std::uint64_t>(count) * static_cast<std::size_t>(kind.width) != held) {
    return damaged(path, fmt::format("the header says {} tokens of {} bytes, {} bytes follow",
                                     count, static_cast<std::size_t>(kind.width), held));
  }
  return {};
}

}  // namespace

Result<Corpus> open_token_corpus(const DataConfig& data) {
  MOTLEY_ASSIGN(auto file, MappedFile::open(data.path));
  if (const auto kind = find_header(file.bytes())) {
    MOTLEY_TRY(check_header(file.bytes(), *kind, data.path));
    return Corpus(std::move(file), kHeaderBytes, kind->width);
  }
  if (file.bytes().size() % sizeof(std::uint16_t) != 0) {
    return damaged(data.path, fmt::format("{} bytes are no whole number of 16-bit tokens",
                                          file.bytes().size()));
  }
  return Corpus(std::move(file), 0, Corpus::Width::kUint16);
}

}  // namespace motley
