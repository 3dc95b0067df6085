#include "models/numbers/random_numbers.h"

#include <algorithm>
#include <cmath>

#include "base/philox.h"
#include "models/numbers/portable_log.h"

namespace motley {

// M. J. Wichura, "Algorithm AS 241: The percentage points of the normal distribution", Applied
// Statistics 37 (1988), PPND16. Its third part begins at a probability of e^-25, less than any
// word's.
const QuantilePart kQuantileOfMiddle = {
    {2.5090809287301226727e+3, 3.3430575583588128105e+4, 6.7265770927008700853e+4,
     4.5921953931549871457e+4, 1.3731693765509461125e+4, 1.9715909503065514427e+3,
     1.3314166789178437745e+2, 3.3871328727963666080e+0},
    {5.2264952788528545610e+3, 2.8729085735721942674e+4, 3.9307895800092710610e+4,
     2.1213794301586595867e+4, 5.3941960214247511077e+3, 6.8718700749205790830e+2,
     4.2313330701600911252e+1, 1.0}};
const QuantilePart kQuantileOfTail = {
    {7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
     1.27045825245236838258e+0, 3.64784832476320460504e+0, 5.76949722146069140550e+0,
     4.63033784615654529590e+0, 1.42343711074968357734e+0},
    {1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
     1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e+0,
     2.05319162663775882187e+0, 1.0}};

namespace {

double quotient(const QuantilePart& part, double x) {
  double above = part.above[0];
  double below = part.below[0];
  for (std::size_t k = 1; k < part.above.size(); ++k) {
    above = above * x + part.above[k];
    below = below * x + part.below[k];
  }
  return above / below;
}

}  // namespace

float uniform_number(std::uint32_t word) {
  return to_unit_float(word);
}

float normal_number(std::uint32_t word) {
  const double p = to_open_unit(word);
  const double q = p - 0.5;
  if (std::abs(q) <= kQuantileMiddle) {
    return static_cast<float>(q * quotient(kQuantileOfMiddle, kQuantileMiddleSquare - q * q));
  }
  const double r = std::sqrt(-portable_log(std::min(p, 1.0 - p))) - kQuantileTailOffset;
  const double size = quotient(kQuantileOfTail, r);
  return static_cast<float>(q < 0 ? -size : size);
}

float exponential_number(std::uint32_t word) {
  return static_cast<float>(-portable_log(to_open_unit(word)));
}

std::int64_t integer_number(std::uint64_t bits, std::int64_t low, std::uint64_t count) {
  constexpr std::uint64_t kLow = 0xFFFFFFFF;
  const std::uint64_t upper = (bits >> 32) * count + ((bits & kLow) * count >> 32);
  return low + static_cast<std::int64_t>(upper >> 32);
}

}  // namespace motley
