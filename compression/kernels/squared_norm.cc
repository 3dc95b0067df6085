#include "compression/kernels/squared_norm.h"

#include <array>
#include <cstddef>

namespace motley {
namespace {

constexpr std::size_t kNormLanes = 16;

}  // namespace

double squared_norm(std::span<const float> values_N) {
  std::array<double, kNormLanes> lanes{};
  const std::size_t whole = values_N.size() - values_N.size() % kNormLanes;
  for (std::size_t i = 0; i < whole; i += kNormLanes) {
    for (std::size_t lane = 0; lane < kNormLanes; ++lane) {
      const double value = values_N[i + lane];
      lanes[lane] += value * value;
    }
  }
  for (std::size_t i = whole; i < values_N.size(); ++i) {
    const double value = values_N[i];
    lanes[i - whole] += value * value;
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace motley
