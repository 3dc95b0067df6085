#include "data/files/text_encoding.h"

#include <algorithm>
#include <cstdint>

namespace motley {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::uint32_t kByteOrderMark = 0xFEFF;
constexpr std::uint32_t kCodePointMax = 0x10FFFF;

bool is_wide(TextEncoding encoding) {
  return encoding == TextEncoding::kUtf32Le || encoding == TextEncoding::kUtf32Be;
}

bool is_big_endian(TextEncoding encoding) {
  return encoding == TextEncoding::kUtf16Be || encoding == TextEncoding::kUtf32Be;
}

std::optional<TextEncoding> encoding_of_mark(std::string_view bytes) {
  if (bytes.starts_with("\xFF\xFE\0\0"sv)) return TextEncoding::kUtf32Le;
  if (bytes.starts_with("\0\0\xFE\xFF"sv)) return TextEncoding::kUtf32Be;
  if (bytes.starts_with("\xFF\xFE"sv)) return TextEncoding::kUtf16Le;
  if (bytes.starts_with("\xFE\xFF"sv)) return TextEncoding::kUtf16Be;
  return std::nullopt;
}

// Text without a mark is UTF-16 or UTF-32 where most characters are ASCII: their NUL bytes are at
// fixed positions.
std::optional<TextEncoding> encoding_of_zeros(std::string_view bytes) {
  constexpr std::size_t kWide = 4;
  constexpr std::size_t kSampleBytes = 64 << 10;
  const std::string_view sample = bytes.substr(0, kSampleBytes);
  std::size_t zeros[kWide] = {};
  for (std::size_t i = 0; i < sample.size(); ++i) zeros[i % kWide] += sample[i] == '\0' ? 1 : 0;
  const std::size_t quads = sample.size() / kWide;
  const auto is_mostly = [&](std::size_t count) { return quads > 0 && 4 * count >= 3 * quads; };
  if (is_mostly(zeros[1]) && zeros[0] == 0 && zeros[2] == quads && zeros[3] == quads) {
    return TextEncoding::kUtf32Le;
  }
  if (is_mostly(zeros[2]) && zeros[3] == 0 && zeros[0] == quads && zeros[1] == quads) {
    return TextEncoding::kUtf32Be;
  }
  if (zeros[0] + zeros[2] == 0 && is_mostly(zeros[1]) && is_mostly(zeros[3])) {
    return TextEncoding::kUtf16Le;
  }
  if (zeros[1] + zeros[3] == 0 && is_mostly(zeros[0]) && is_mostly(zeros[2])) {
    return TextEncoding::kUtf16Be;
  }
  return std::nullopt;
}

// Reads code points one by one.
class Decoder {
 public:
  Decoder(std::string_view bytes, TextEncoding encoding)
      : rest_(bytes), unit_bytes_(is_wide(encoding) ? 4 : 2), big_(is_big_endian(encoding)) {}

  [[nodiscard]] bool is_at_end() const { return rest_.empty(); }

  // nullopt if it is invalid.
  std::optional<std::uint32_t> next() {
    const auto first = unit();
    if (!first) return std::nullopt;
    if (unit_bytes_ == 2 && is_high_surrogate(*first)) {
      const auto second = unit();
      if (!second || !is_low_surrogate(*second)) return std::nullopt;
      return 0x10000U + ((*first - 0xD800U) << 10) + (*second - 0xDC00U);
    }
    const bool is_valid =
        *first <= kCodePointMax && !is_high_surrogate(*first) && !is_low_surrogate(*first);
    return is_valid ? first : std::nullopt;
  }

 private:
  static bool is_high_surrogate(std::uint32_t unit) { return unit >= 0xD800 && unit < 0xDC00; }

  static bool is_low_surrogate(std::uint32_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

  std::optional<std::uint32_t> unit() {
    if (rest_.size() < unit_bytes_) return std::nullopt;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < unit_bytes_; ++i) {
      const std::size_t at = big_ ? i : unit_bytes_ - 1 - i;
      value = (value << 8) | static_cast<unsigned char>(rest_[at]);
    }
    rest_.remove_prefix(unit_bytes_);
    return value;
  }

  std::string_view rest_;
  std::size_t unit_bytes_;
  bool big_;
};

void append_utf8(std::string& text, std::uint32_t point) {
  const auto add = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (point < 0x80) return add(point);
  if (point < 0x800) {
    add(0xC0 | point >> 6);
  } else if (point < 0x10000) {
    add(0xE0 | point >> 12);
    add(0x80 | (point >> 6 & 0x3F));
  } else {
    add(0xF0 | point >> 18);
    add(0x80 | (point >> 12 & 0x3F));
    add(0x80 | (point >> 6 & 0x3F));
  }
  add(0x80 | (point & 0x3F));
}

bool is_text_character(std::uint32_t point) {
  constexpr std::string_view kControls = "\t\n\v\f\r\x1b";
  if (point < 0x20) return kControls.find(static_cast<char>(point)) != std::string_view::npos;
  return point != 0x7F && (point & 0xFFFEU) != 0xFFFEU;
}

}  // namespace

std::string_view encoding_name(TextEncoding encoding) {
  if (encoding == TextEncoding::kBytes) return "bytes";
  return is_wide(encoding) ? "UTF-32" : "UTF-16";
}

std::optional<TextEncoding> text_encoding(std::string_view bytes) {
  const bool has_zeros = bytes.find('\0') != std::string_view::npos;
  const auto marked = encoding_of_mark(bytes);
  if (marked && (has_zeros || to_utf8(bytes, *marked))) return marked;
  return has_zeros ? encoding_of_zeros(bytes) : TextEncoding::kBytes;
}

std::optional<std::string> to_utf8(std::string_view bytes, TextEncoding encoding) {
  std::string text;
  text.reserve(bytes.size() / 2);
  Decoder decoder(bytes, encoding);
  for (bool is_first = true; !decoder.is_at_end(); is_first = false) {
    const auto point = decoder.next();
    if (is_first && point == kByteOrderMark) continue;
    if (!point || !is_text_character(*point)) return std::nullopt;
    append_utf8(text, *point);
  }
  return text;
}

}  // namespace motley
