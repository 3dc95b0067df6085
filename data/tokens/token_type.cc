#include "data/tokens/token_type.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>

#include "data/tokens/spread_blocks.h"
#include "data/tokens/token_halves.h"

namespace motley {
namespace {

constexpr std::array kTokenTypes = {
    std::pair{"uint8", TokenType::kUint8},   std::pair{"uint16", TokenType::kUint16},
    std::pair{"uint32", TokenType::kUint32}, std::pair{"int8", TokenType::kInt8},
    std::pair{"int16", TokenType::kInt16},   std::pair{"int32", TokenType::kInt32},
    std::pair{"int64", TokenType::kInt64}};

// This many large words, nearly all at the same position of each pair, are no coincidence: among
// tokens of one width each position has half of them.
constexpr std::uint64_t kSignificantWords = 16;
constexpr std::uint64_t kOthersPart = 20;

// The number of words above `small` at even and at odd positions, except words of all ones, the
// upper half of a negative number.
struct LargeWords {
  std::uint64_t even = 0;
  std::uint64_t odd = 0;
};

template <class Word>
void swap_bytes(Word& word) {
  const auto bytes = std::as_writable_bytes(std::span(&word, 1));
  std::ranges::reverse(bytes);
}

template <class Word>
LargeWords count_large_words(std::span<const std::byte> bytes,
                             std::uint32_t small,
                             bool swapped = false) {
  LargeWords large;
  for_spread_blocks(bytes, [&](std::span<const std::byte> block) {
    for (std::size_t at = 0; at + 2 * sizeof(Word) <= block.size(); at += 2 * sizeof(Word)) {
      Word pair[2];
      std::memcpy(pair, block.data() + at, sizeof pair);
      if (swapped) std::ranges::for_each(pair, swap_bytes<Word>);
      const auto is_large = [&](Word word) {
        return word > small && word != static_cast<Word>(~Word{0});
      };
      large.even += is_large(pair[0]) ? 1 : 0;
      large.odd += is_large(pair[1]) ? 1 : 0;
    }
  });
  return large;
}

bool are_nearly_all(std::uint64_t these, std::uint64_t others) {
  return these >= kSignificantWords && others * kOthersPart <= these;
}

template <class Wanted>
bool are_all(std::span<const std::byte> bytes, const Wanted& wanted) {
  bool all = true;
  for_spread_blocks(bytes, [&](std::span<const std::byte> block) {
    all = all && std::ranges::all_of(block, [&](std::byte byte) {
            return wanted(std::to_integer<unsigned>(byte));
          });
  });
  return all;
}

// Whether the bytes are floats that are whole numbers below `vocab`, some of them not 0. As such
// floats, other tokens are fractions, most of them close to 0: of each pair of 16-bit tokens the
// first one would be 0 or a multiple of a power of two.
template <class Float>
bool are_whole_floats(std::span<const std::byte> bytes, std::uint32_t vocab) {
  constexpr std::uint64_t kFloatsMin = 32;
  constexpr std::uint32_t kLimit = 1U << 22;  // from 2^23 on every float32 is whole
  const auto limit = static_cast<Float>(std::min(vocab, kLimit));
  bool are_whole = true;
  std::uint64_t others = 0;  // than 0
  for_spread_blocks(bytes, [&](std::span<const std::byte> block) {
    for (std::size_t at = 0; are_whole && at + sizeof(Float) <= block.size(); at += sizeof(Float)) {
      Float value;
      std::memcpy(&value, block.data() + at, sizeof value);
      are_whole = value >= 0 && value < limit && value == std::floor(value);
      others += value != 0 ? 1 : 0;
    }
  });
  return are_whole && others >= kFloatsMin;
}

// ASCII text with white space, or non-ASCII bytes of UTF-8.
bool is_text_byte(unsigned byte) {
  return byte == '\t' || byte == '\n' || byte == '\r' || (byte >= 0x20 && byte != 0x7F);
}

bool has_large_token(std::span<const std::byte> bytes, std::uint32_t vocab) {
  bool found = false;
  for_spread_blocks(bytes, [&](std::span<const std::byte> block) {
    for (std::size_t at = 0; at + 2 <= block.size() && !found; at += 2) {
      std::uint16_t token = 0;
      std::memcpy(&token, block.data() + at, sizeof token);
      found = token >= vocab;
    }
  });
  return found;
}

// Whether tokens that only fit the vocabulary as single bytes are single bytes: the distance
// between the halves of words must be small, with an allowance for chance.
bool are_rather_bytes(const HalfCounts& halves) {
  constexpr double kValues = 256;
  constexpr double kWordsMin = 1024;  // with fewer, halves of wider tokens may look alike
  constexpr double kDistanceMax = 0.1;
  if (halves.words() < kWordsMin) return false;
  return halves.distance() <=
         kDistanceMax + std::sqrt(kValues / (std::numbers::pi * halves.words()));
}

// For words up to `small`, which may be the upper halves of tokens.
TokenEvidence evidence_of_words(std::span<const std::byte> bytes, std::uint32_t small) {
  const LargeWords swapped = count_large_words<std::uint16_t>(bytes, small, /*swapped=*/true);
  if (are_nearly_all(swapped.odd, swapped.even)) return TokenEvidence::kBigEndian;
  const LargeWords words = count_large_words<std::uint16_t>(bytes, small);
  const LargeWords longs = count_large_words<std::uint32_t>(bytes, 0);
  if (are_nearly_all(longs.even, longs.odd)) return TokenEvidence::kInt64;
  if (are_nearly_all(words.even, words.odd)) return TokenEvidence::kUint32;
  return std::min(words.even, words.odd) >= kSignificantWords ? TokenEvidence::kUint16
                                                              : TokenEvidence::kNone;
}

// If there is no evidence for more than 16 bits.
TokenEvidence evidence_of_halves(std::span<const std::byte> bytes,
                                 std::uint32_t vocab,
                                 TokenEvidence otherwise) {
  // Uniformly random 16-bit tokens have alike halves, too.
  constexpr std::uint32_t kShortVocab = 1U << 16;
  const HalfCounts halves(bytes);
  if (halves.are_alike() && !(vocab <= kShortVocab && halves.may_be_uniform())) {
    return TokenEvidence::kUint8OrUint16;
  }
  // Tokens outside the vocabulary are rejected for that reason instead.
  const bool are_within = vocab > kShortVocab || !has_large_token(bytes, vocab);
  return are_within && are_halves_swapped(bytes) ? TokenEvidence::kSwapped : otherwise;
}

}  // namespace

std::size_t token_bytes(TokenType type) {
  switch (type) {
    case TokenType::kUint8:
    case TokenType::kInt8:
      return 1;
    case TokenType::kUint16:
    case TokenType::kInt16:
      return 2;
    case TokenType::kUint32:
    case TokenType::kInt32:
      return 4;
    case TokenType::kInt64:
      return 8;
  }
  return 0;
}

std::string_view token_type_name(TokenType type) {
  for (const auto& [name, each] : kTokenTypes) {
    if (each == type) return name;
  }
  return "";
}

std::optional<TokenType> token_type_of(std::string_view dtype) {
  for (const auto& [name, type] : kTokenTypes) {
    if (dtype == name) return type;
  }
  return std::nullopt;
}

TokenEvidence token_evidence(std::span<const std::byte> bytes, std::uint32_t vocab) {
  // This many bytes of binary numbers are not all text by chance.
  constexpr std::size_t kTextBytesMin = 256;
  constexpr std::uint32_t kByteVocab = 256;
  // Allows for tokens outside a small vocabulary, which are then reported as the error.
  constexpr std::uint32_t kUpperHalfMax = 3;
  if (bytes.size() >= kTextBytesMin && are_all(bytes, is_text_byte)) return TokenEvidence::kText;
  if (are_whole_floats<float>(bytes, vocab)) return TokenEvidence::kFloat32;
  if (are_whole_floats<double>(bytes, vocab)) return TokenEvidence::kFloat64;
  const std::uint32_t upper = (vocab - 1) >> 16;
  const TokenEvidence legal = evidence_of_words(bytes, upper);
  if (legal == TokenEvidence::kUint32 || legal == TokenEvidence::kInt64 ||
      legal == TokenEvidence::kBigEndian) {
    return legal;
  }
  const auto is_within = [&](unsigned byte) { return byte < vocab; };
  if (vocab <= kByteVocab && bytes.size() >= kTextBytesMin && has_large_token(bytes, vocab) &&
      are_all(bytes, is_within) && are_rather_bytes(HalfCounts(bytes))) {
    return TokenEvidence::kUint8;
  }
  const TokenEvidence wider = evidence_of_words(bytes, std::max(upper, kUpperHalfMax));
  const bool has_whole_pairs = bytes.size() % sizeof(std::uint32_t) == 0;
  const TokenEvidence found =
      wider == TokenEvidence::kNone && !has_whole_pairs ? TokenEvidence::kUint16 : wider;
  if (found != TokenEvidence::kUint16 && found != TokenEvidence::kNone) return found;
  return evidence_of_halves(bytes, vocab, found);
}

}  // namespace motley
