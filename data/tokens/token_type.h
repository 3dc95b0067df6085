// TokenType: the width of a file's tokens, from its header, from data.dtype, or detected from the
// bytes. docs/formats/data.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace motley {

enum class TokenType { kUint8, kUint16, kUint32, kInt8, kInt16, kInt32, kInt64 };

[[nodiscard]] std::size_t token_bytes(TokenType type);
[[nodiscard]] std::string_view token_type_name(TokenType type);
// For a value of data.dtype; nullopt for "auto".
[[nodiscard]] std::optional<TokenType> token_type_of(std::string_view dtype);

enum class TokenEvidence {
  kNone,           // too few tokens to distinguish 16 bits from 32
  kUint8,          // bytes within the vocabulary, alike at odd and even positions
  kUint16,         // 16-bit words of any size at odd and even positions
  kUint8OrUint16,  // and their lower and upper bytes are distributed alike
  kSwapped,        // or the upper bytes distinguish tokens better
  kUint32,         // every second 16-bit word is small
  kInt64,          // and every second 32-bit word
  kFloat32,        // whole numbers as floats
  kFloat64,
  kBigEndian,  // the small words come first, with swapped bytes
  kText        // all bytes are text
};

// For the bytes of a file without a header, and tokens below `vocab`. Samples up to 2 MiB; does not
// check whether the file ends within a token.
[[nodiscard]] TokenEvidence token_evidence(std::span<const std::byte> bytes, std::uint32_t vocab);

}  // namespace motley
