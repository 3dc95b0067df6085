#include "data/tokens/nanogpt_meta.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace motley {
namespace {

constexpr std::string_view kSizeKey = "vocab_size";

// Removes the opcode that gives the key a number in the pickle's table, if any.
void skip_memo(std::string_view& rest) {
  constexpr char kMemoize = '\x94';
  constexpr char kBinPut = 'q';
  constexpr char kLongBinPut = 'r';
  constexpr char kPut = 'p';
  if (rest.empty()) return;
  std::size_t length = 0;
  if (rest.front() == kMemoize) length = 1;
  if (rest.front() == kBinPut) length = 2;
  if (rest.front() == kLongBinPut) length = 5;
  if (rest.starts_with('\n')) {  // protocol 0: the end of the key
    rest.remove_prefix(1);
    if (rest.starts_with(kPut)) length = std::min(rest.find('\n'), rest.size() - 1) + 1;
  }
  rest.remove_prefix(std::min(length, rest.size()));
}

// A little-endian integer of that many bytes.
std::optional<std::int64_t> binary_number(std::string_view rest, std::size_t bytes) {
  if (rest.size() < bytes) return std::nullopt;
  std::int64_t value = 0;
  for (std::size_t i = bytes; i > 0; --i) {
    value = value << 8 | static_cast<unsigned char>(rest[i - 1]);
  }
  return value;
}

std::optional<std::int64_t> number_at_begin(std::string_view rest) {
  if (rest.empty()) return std::nullopt;
  const char opcode = rest.front();
  rest.remove_prefix(1);
  if (opcode == 'K') return binary_number(rest, 1);
  if (opcode == 'M') return binary_number(rest, 2);
  if (opcode == 'J') return binary_number(rest, 4);
  if (opcode != 'I') return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  const bool is_line = error == std::errc() && end != rest.data() + rest.size() && *end == '\n';
  return is_line ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<std::int64_t> vocab_size_in_meta(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const std::size_t at = text.find(kSizeKey);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = text.substr(at + kSizeKey.size());
  if (rest.find(kSizeKey) != std::string_view::npos) return std::nullopt;
  skip_memo(rest);
  return number_at_begin(rest);
}

}  // namespace motley
