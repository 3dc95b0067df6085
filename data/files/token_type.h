// TokenType: how wide the tokens of a file are, as it says, as a person says (data.dtype), or as
// the bytes themselves show. docs/formats/data.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace motley {

enum class TokenType { kUint8, kUint16, kUint32, kInt32, kInt64 };

[[nodiscard]] std::size_t token_bytes(TokenType type);
[[nodiscard]] std::string_view token_type_name(TokenType type);
// Of a value of data.dtype; nothing for "auto".
[[nodiscard]] std::optional<TokenType> token_type_of(std::string_view dtype);

enum class TokenEvidence {
  kNone,           // too few tokens to tell 16 bits from 32
  kUint8,          // bytes, each within the vocabulary, alike at odd and even places
  kUint16,         // 16-bit words of any size at odd and even places
  kUint8OrUint16,  // and their lower bytes are distributed as their upper ones are
  kSwapped,        // or the upper ones tell them apart better
  kUint32,         // every second 16-bit word is small
  kInt64,          // and every second 32-bit word
  kBigEndian,      // the small words come first, their bytes the other way round
  kText            // bytes that are all of text
};

// Of the bytes of a file without a header, for tokens below `vocab`. Looks at up to 2 MiB of it,
// and not at whether the file ends within a token.
[[nodiscard]] TokenEvidence token_evidence(std::span<const std::byte> bytes, std::uint32_t vocab);

}  // namespace motley
