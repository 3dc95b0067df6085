// Encodings of text files. Motley's tokens are the bytes of UTF-8, or of any encoding without NUL
// bytes; UTF-16 and UTF-32 are converted.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace motley {

enum class TextEncoding {
  kBytes,  // no NUL bytes: tokens as they are
  kUtf16Le,
  kUtf16Be,
  kUtf32Le,
  kUtf32Be
};

// "UTF-16".
[[nodiscard]] std::string_view encoding_name(TextEncoding encoding);

// By the byte order mark or, without one, by the positions of the NUL bytes in the first 64 KiB.
// nullopt if the bytes are not text. The rest of the bytes may still be invalid (to_utf8).
[[nodiscard]] std::optional<TextEncoding> text_encoding(std::string_view bytes);

// The text without its byte order mark. nullopt if a character is invalid, cut off, or a control
// character that text does not have. REQUIRES: not kBytes. At most 1.5 times as many bytes.
[[nodiscard]] std::optional<std::string> to_utf8(std::string_view bytes, TextEncoding encoding);

}  // namespace motley
