// The properties of Megatron's index, nanoGPT's meta.pkl and text encodings, and valid ones.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/files/text_encoding.h"
#include "data/tokens/megatron_index.h"
#include "data/tokens/nanogpt_meta.h"
#include "tests/fuzz/laws.h"

namespace motley {

template <class T>
void append_number(std::string& bytes, T number) {
  char stored[sizeof number];
  std::memcpy(stored, &number, sizeof number);
  bytes.append(stored, sizeof stored);
}

// As Megatron writes it, for consecutive sequences of these lengths.
inline std::string megatron_index(std::uint8_t code,
                                  std::size_t token_bytes,
                                  const std::vector<std::int32_t>& lengths,
                                  const std::vector<std::int64_t>& documents) {
  std::string bytes("MMIDIDX\0\0", 9);
  append_number<std::uint64_t>(bytes, 1);
  append_number(bytes, code);
  append_number<std::uint64_t>(bytes, lengths.size());
  append_number<std::uint64_t>(bytes, documents.size());
  for (const std::int32_t length : lengths) append_number(bytes, length);
  std::int64_t offset = 0;
  for (const std::int32_t length : lengths) {
    append_number(bytes, offset);
    offset += length * static_cast<std::int64_t>(token_bytes);
  }
  for (const std::int64_t border : documents) append_number(bytes, border);
  return bytes;
}

inline std::string right_megatron_index() {
  return megatron_index(8, 2, {3, 5, 1}, {0, 2, 3});
}

// An accepted index is the whole token file.
inline std::string wrong_with_megatron_index(std::string_view file) {
  constexpr std::uint64_t kBinBytes = 18;
  const auto index = parse_megatron_index(std::as_bytes(std::span(file)), kBinBytes, "a.idx");
  if (!index.ok()) return wrong_error(index.error(), {ErrorCode::kData}, "a.idx");
  if (index->tokens * token_bytes(index->type) != kBinBytes) return "tokens of another size";
  const std::uint64_t least = 34 + index->sequences * 12;
  return least <= file.size() ? "" : "more sequences than its bytes";
}

inline std::string right_meta() {
  return {"\x80\x04\x95\x14\0\0\0\0\0\0\0}\x94\x8c\nvocab_size\x94M\x80\xc4s.", 31};
}

inline std::string wrong_with_meta(std::string_view file) {
  const auto size = vocab_size_in_meta(std::as_bytes(std::span(file)));
  if (!size) return "";
  return file.find("vocab_size") != std::string_view::npos ? "" : "a size without its key";
}

// Converted text is valid, not too long, and bytes that stay as they are.
inline std::string wrong_with_text_encoding(std::string_view file) {
  const auto encoding = text_encoding(file);
  if (!encoding) return file.find('\0') != std::string_view::npos ? "" : "bytes refused as binary";
  if (*encoding == TextEncoding::kBytes) {
    return file.find('\0') == std::string_view::npos ? "" : "NUL bytes taken as text";
  }
  const auto text = to_utf8(file, *encoding);
  if (!text) return "";
  if (text->find('\0') != std::string::npos) return "a NUL byte in converted text";
  return 2 * text->size() <= 3 * file.size() ? "" : "more than 1.5 times as long";
}

}  // namespace motley
