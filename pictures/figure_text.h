// Text in pictures: escaped, since names come from files, and cut where it would not fit. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace motley {

// As text of XML and HTML: the five reserved characters, and a mark in the place of what XML does
// not allow at all, which includes bytes that are no UTF-8.
[[nodiscard]] std::string escaped(std::string_view text);

// The first so many characters of UTF-8, with an ellipsis where something is missing.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t characters);

// How wide a text is drawn at most, in pixels: fonts differ, so it is estimated from above.
[[nodiscard]] double text_width(std::string_view text, double font_px);

// As much of the text as `width` pixels hold, as `shortened` cuts.
[[nodiscard]] std::string fitted(std::string_view text, double width, double font_px);

// "12.5 ms": seconds with four digits, in a unit that suits `whole_s`.
[[nodiscard]] std::string time_text(double seconds, double whole_s);

// 1, 2 or 5 times a power of ten, so that about `ticks` of them make the whole.
// REQUIRES: whole > 0 and finite, ticks >= 1.
[[nodiscard]] double tick_of(double whole, double ticks);

}  // namespace motley
