// The pieces that lines of a screen are made of: text that is harmless, and as wide as it should
// be.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"

namespace motley {

// Of foreign text what a terminal may be given: '?' for what could move its cursor, change its
// colours, or is no character.
[[nodiscard]] std::string harmless(std::string_view text);

// One character is one column. REQUIRES: the text is UTF-8, as harmless() gives it.
[[nodiscard]] std::size_t columns_of(std::string_view text);

// The beginning of a text that takes so many columns at most.
[[nodiscard]] std::string clipped(std::string_view text, std::size_t columns);

// The text in lines of so many columns at most, broken at spaces where there are any; none of "".
// REQUIRES: columns > 0.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, std::size_t columns);

// Columns two apart, each as wide as its widest cell; the first one flush left, numbers flush
// right.
[[nodiscard]] std::vector<std::string> aligned_lines(
    const std::vector<std::vector<std::string>>& rows, std::size_t names);

// Values from the least to the greatest as bars, "▁▂▃▄▅▆▇█"; ' ' for one that is not finite.
[[nodiscard]] std::string sparkline(const std::vector<double>& values);

// "[#####---------------]  25 %", as wide.
[[nodiscard]] std::string progress_bar(double share, std::size_t columns);

// A number of a document; not a number where it is null or none.
[[nodiscard]] double number_at(const Json& object, const char* key);
// A text of it, harmless; "" where it is none.
[[nodiscard]] std::string text_at(const Json& object, const char* key);

// "0:05:31"; "?" where it is not known.
[[nodiscard]] std::string duration_text(double seconds);

}  // namespace motley
