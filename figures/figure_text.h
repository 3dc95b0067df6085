// Text in pictures: escaped, because names come from files, and shortened if it does not fit. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace motley {

// Escapes text for XML and HTML: the five reserved characters, and a replacement character for what
// XML forbids, including invalid UTF-8.
[[nodiscard]] std::string escaped(std::string_view text);

// The first so many UTF-8 characters, with an ellipsis if the text is longer.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t characters);

// The maximum width of a text in pixels; an upper estimate, because fonts differ.
[[nodiscard]] double text_width(std::string_view text, double font_px);

// As much of the text as fits into `width` pixels, shortened with an ellipsis.
[[nodiscard]] std::string fitted(std::string_view text, double width, double font_px);

// "12.5 ms": seconds with four digits, in a unit that suits `whole_s`.
[[nodiscard]] std::string time_text(double seconds, double whole_s);

// A tick distance of 1, 2 or 5 times a power of ten that divides the whole into about `ticks`
// parts. REQUIRES: whole > 0 and finite, ticks >= 1.
[[nodiscard]] double tick_of(double whole, double ticks);

}  // namespace motley
