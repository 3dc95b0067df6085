#include "models/numbers/portable_log.h"

#include <cmath>

namespace motley {

// x = m 2^e with m in [sqrt(1/2), sqrt(2)), ln m = 2 artanh((m-1)/(m+1)). There are no fused
// multiply-adds: the whole project is compiled with -ffp-contract=off.
double portable_log(double x) {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);
  if (mantissa < 0.7071067811865476) {
    mantissa *= 2.0;
    --exponent;
  }
  const double t = (mantissa - 1.0) / (mantissa + 1.0);
  const double t2 = t * t;
  double series = 0.0;
  for (int k = 21; k >= 1; k -= 2) series = series * t2 + 1.0 / k;
  return 2.0 * t * series + exponent * 0.6931471805599453;
}

}  // namespace motley
