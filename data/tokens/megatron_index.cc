#include "data/tokens/megatron_index.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

namespace motley {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::string_view kIndexMagic = "MMIDIDX\0\0"sv;
constexpr std::string_view kEarlierIndexMagic = "TNTIDX\0\0"sv;
constexpr std::uint64_t kIndexVersion = 1;
// After the magic number: version, dtype code, numbers of sequences and of document borders.
constexpr std::size_t kCodeAt = 17;
constexpr std::size_t kCountsAt = 18;
constexpr std::size_t kIndexHeaderBytes = 34;

template <class T>
T number_at(std::span<const std::byte> file, std::size_t at) {
  T number;
  std::memcpy(&number, file.data() + at, sizeof number);
  return number;
}

Error unusable_index(const std::string& path,
                     const std::string& cause,
                     const std::string& remedy =
                         "create both files again, or check that they were copied completely") {
  return {ErrorCode::kData, fmt::format("unusable index {}", path), cause, remedy};
}

std::optional<TokenType> type_of_code(unsigned code) {
  constexpr std::array kCodes = {
      std::pair{1U, TokenType::kUint8}, std::pair{2U, TokenType::kInt8},
      std::pair{3U, TokenType::kInt16}, std::pair{4U, TokenType::kInt32},
      std::pair{5U, TokenType::kInt64}, std::pair{8U, TokenType::kUint16}};
  for (const auto& [number, type] : kCodes) {
    if (number == code) return type;
  }
  return std::nullopt;
}

Result<MegatronIndex> parse_index_header(std::span<const std::byte> file, const std::string& path) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (text.starts_with(kEarlierIndexMagic)) {
    return unusable_index(path, "it is of an earlier format, TNTIDX",
                          "preprocess the data again with --dataset-impl mmap");
  }
  if (!text.starts_with(kIndexMagic)) {
    return unusable_index(path, "it does not begin as an index of Megatron's, MMIDIDX");
  }
  if (file.size() < kIndexHeaderBytes) return unusable_index(path, "it ends in its header");
  const auto version = number_at<std::uint64_t>(file, kIndexMagic.size());
  if (version != kIndexVersion) {
    return unusable_index(
        path, fmt::format("its version is {}; supported is {}", version, kIndexVersion));
  }
  const auto code = number_at<std::uint8_t>(file, kCodeAt);
  const auto type = type_of_code(code);
  if (!type) {
    return unusable_index(path, fmt::format("its dtype code is {}, which is not of integers", code),
                          "tokens are integers: preprocess the data again");
  }
  return MegatronIndex{*type, number_at<std::uint64_t>(file, kCountsAt),
                       number_at<std::uint64_t>(file, kCountsAt + sizeof(std::uint64_t)), 0};
}

// The lengths and the offsets of the sequences, each at the end of the preceding one.
Result<std::uint64_t> check_sequences(std::span<const std::byte> lengths,
                                      std::span<const std::byte> offsets,
                                      const MegatronIndex& index,
                                      const std::string& path) {
  std::uint64_t tokens = 0;
  for (std::uint64_t i = 0; i < index.sequences; ++i) {
    const auto length = number_at<std::int32_t>(lengths, i * sizeof(std::int32_t));
    const auto offset = number_at<std::int64_t>(offsets, i * sizeof(std::int64_t));
    if (length < 0) {
      return unusable_index(path, fmt::format("the length of sequence {} is {}", i, length));
    }
    if (offset < 0 || static_cast<std::uint64_t>(offset) != tokens * token_bytes(index.type)) {
      return unusable_index(path, fmt::format("sequence {} begins at byte {}, not at {}, the end "
                                              "of the sequence before",
                                              i, offset, tokens * token_bytes(index.type)));
    }
    tokens += static_cast<std::uint64_t>(length);
  }
  return tokens;
}

Result<void> check_documents(std::span<const std::byte> borders,
                             const MegatronIndex& index,
                             const std::string& path) {
  std::int64_t before = 0;
  const std::uint64_t count = borders.size() / sizeof(std::int64_t);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto border = number_at<std::int64_t>(borders, i * sizeof(std::int64_t));
    if (border < before || (i == 0 && border != 0)) {
      return unusable_index(path, fmt::format("its document borders are not ascending from 0: "
                                              "number {} is {}",
                                              i, border));
    }
    before = border;
  }
  if (count > 0 && static_cast<std::uint64_t>(before) != index.sequences) {
    return unusable_index(
        path, fmt::format("its documents have {} sequences of {}", before, index.sequences));
  }
  return {};
}

}  // namespace

Result<MegatronIndex> parse_megatron_index(std::span<const std::byte> file,
                                           std::uint64_t bin_bytes,
                                           const std::string& path) {
  constexpr std::uint64_t kSequenceBytes = sizeof(std::int32_t) + sizeof(std::int64_t);
  MOTLEY_ASSIGN(MegatronIndex index, parse_index_header(file, path));
  const std::uint64_t held = file.size() - kIndexHeaderBytes;
  const std::uint64_t borders = index.documents;
  const bool fits =
      index.sequences <= held / kSequenceBytes && borders <= held / sizeof(std::int64_t);
  const std::uint64_t wanted =
      fits ? index.sequences * kSequenceBytes + borders * sizeof(std::int64_t) : 0;
  // Megatron may add a byte for each sequence, its mode, which is of no effect on tokens.
  if (!fits || (held != wanted && held != wanted + index.sequences)) {
    return unusable_index(path, fmt::format("it declares {} sequences and {} document borders, but "
                                            "{} bytes follow",
                                            index.sequences, borders, held));
  }
  const auto lengths = file.subspan(kIndexHeaderBytes, index.sequences * sizeof(std::int32_t));
  const auto offsets =
      file.subspan(kIndexHeaderBytes + lengths.size(), index.sequences * sizeof(std::int64_t));
  MOTLEY_ASSIGN(index.tokens, check_sequences(lengths, offsets, index, path));
  if (index.tokens * token_bytes(index.type) != bin_bytes) {
    return unusable_index(path, fmt::format("it declares {} tokens of {} bytes, the .bin file has "
                                            "{} bytes",
                                            index.tokens, token_bytes(index.type), bin_bytes));
  }
  MOTLEY_TRY(check_documents(file.subspan(kIndexHeaderBytes + lengths.size() + offsets.size(),
                                          borders * sizeof(std::int64_t)),
                             index, path));
  index.documents = borders > 0 ? borders - 1 : 0;
  return index;
}

}  // namespace motley
