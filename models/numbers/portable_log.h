// A natural logarithm with the same bits on every machine. It uses only IEEE operations, each
// rounded once; the logarithms of C libraries differ in the last bit.
#pragma once

namespace motley {

// Accurate to about 2 ulp. REQUIRES: 0 < x <= 1 and x is not subnormal.
[[nodiscard]] double portable_log(double x);

}  // namespace motley
