// Initial values. The normal draws use only IEEE operations that round the same everywhere (no
// libm, no fused multiply-add: see the flag in CMakeLists.txt), so that a parameter starts
// with the same bits on every machine that may come to hold it.
#include "models/spec/initialize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "base/check.h"
#include "base/hash.h"
#include "base/philox.h"
#include "models/numbers/portable_log.h"

namespace motley {
namespace {

constexpr double kTwoPi = 6.283185307179586;

struct SinCos {
  double sin;
  double cos;
};

// Sine and cosine of 2 pi turn, turn in [0, 1): Taylor series on an eighth of the circle, then
// symmetry.
SinCos portable_sincos(double turn) {
  const int quarter = static_cast<int>(turn * 4.0 + 0.5);  // the nearest multiple of pi / 2
  const double angle = (turn - quarter * 0.25) * kTwoPi;
  const double a2 = angle * angle;
  double sine = 0.0;
  double cosine = 0.0;
  for (int k = 16; k >= 2; k -= 2) {
    sine = (1.0 + sine) * (-a2 / (k * (k + 1)));
    cosine = (1.0 + cosine) * (-a2 / (k * (k - 1)));
  }
  sine = angle * (1.0 + sine);
  cosine = 1.0 + cosine;
  switch (quarter % 4) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

// Four normal draws from one block (Box and Muller, 1958).
std::array<double, 4> normal_draws(const PhiloxBlock& block) {
  std::array<double, 4> draws{};
  for (std::size_t pair = 0; pair < 4; pair += 2) {
    const double radius = std::sqrt(-2.0 * portable_log(to_open_unit(block[pair])));
    const SinCos direction = portable_sincos(to_open_unit(block[pair + 1]));
    draws[pair] = radius * direction.cos;
    draws[pair + 1] = radius * direction.sin;
  }
  return draws;
}

std::array<double, 4> uniform_draws(const PhiloxBlock& block) {
  std::array<double, 4> draws{};
  for (std::size_t i = 0; i < 4; ++i) draws[i] = 2.0 * to_open_unit(block[i]) - 1.0;
  return draws;
}

}  // namespace

void initialize_parameter(const ParameterSpec& spec, std::int64_t seed, std::span<float> values) {
  MOTLEY_CHECK(static_cast<std::int64_t>(values.size()) == spec.count(), "{}: {} values, not {}",
               spec.name, values.size(), spec.count());
  if (spec.init.kind == InitRule::Kind::kConstant) {
    std::fill(values.begin(), values.end(), static_cast<float>(spec.init.scale));
    return;
  }
  const auto draw = spec.init.kind == InitRule::Kind::kNormal ? normal_draws : uniform_draws;
  const auto key = static_cast<std::uint64_t>(seed);
  const std::uint64_t stream = hash64(spec.name);
  for (std::size_t first = 0; first < values.size(); first += 4) {
    const std::array<double, 4> draws = draw(philox4x32(key, stream, first / 4));
    const std::size_t count = std::min<std::size_t>(4, values.size() - first);
    for (std::size_t i = 0; i < count; ++i) {
      values[first + i] = static_cast<float>(spec.init.scale * draws[i]);
    }
  }
}

}  // namespace motley
