// The natural logarithm with the same bits on every machine: IEEE operations alone that each round
// once, where a C library's differs from another's in the last bit.
#pragma once

namespace motley {

// To about 2 units in the last place. REQUIRES: 0 < x <= 1, normal.
[[nodiscard]] double portable_log(double x);

}  // namespace motley
