// Generators of gradient slices.
#pragma once

#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

namespace motley {

using Bytes = std::vector<std::byte>;
using Floats = std::vector<float>;

inline Floats normal_slice(std::size_t count, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Floats values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// Student's t with two degrees of freedom: infinite variance, a few values far larger than the
// rest.
inline Floats heavy_slice(std::size_t count, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::student_t_distribution<float> heavy(2);
  Floats values(count);
  for (float& value : values) value = heavy(random);
  return values;
}

}  // namespace motley
