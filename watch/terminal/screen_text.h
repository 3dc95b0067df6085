// Building blocks of screen lines: sanitized text of a given width.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"

namespace motley {

// Untrusted text made safe for a terminal: '?' replaces control characters and invalid UTF-8.
[[nodiscard]] std::string harmless(std::string_view text);

// The width in columns, one per character. REQUIRES: UTF-8, as harmless() returns it.
[[nodiscard]] std::size_t columns_of(std::string_view text);

// The longest prefix of at most so many columns.
[[nodiscard]] std::string clipped(std::string_view text, std::size_t columns);

// Lines of at most so many columns, broken at spaces if possible; no line for "". REQUIRES: columns
// > 0.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, std::size_t columns);

// Columns separated by two spaces, each as wide as its widest cell. The first `names` columns are
// left-aligned, the others right-aligned.
[[nodiscard]] std::vector<std::string> aligned_lines(
    const std::vector<std::vector<std::string>>& rows, std::size_t names);

// Values, scaled from the minimum to the maximum, as bars "▁▂▃▄▅▆▇█"; ' ' for one that is not
// finite.
[[nodiscard]] std::string sparkline(const std::vector<double>& values);

// "[#####---------------]  25 %", `columns` wide.
[[nodiscard]] std::string progress_bar(double share, std::size_t columns);

// The number under `key`; NaN if it is null or no number.
[[nodiscard]] double number_at(const Json& object, const char* key);
// The string under `key`, through harmless(); "" if it is no string.
[[nodiscard]] std::string text_at(const Json& object, const char* key);

// "0:05:31"; "?" if unknown.
[[nodiscard]] std::string duration_text(double seconds);

}  // namespace motley
