// Aligned text tables.
#pragma once

#include <string>
#include <vector>

namespace motley {

using TextRow = std::vector<std::string>;

// Columns of equal width, two spaces apart, one line a row, each behind `indent` spaces.
// REQUIRES: no row is longer than the first.
[[nodiscard]] std::string aligned_table(const std::vector<TextRow>& rows, int indent = 0);

}  // namespace motley
