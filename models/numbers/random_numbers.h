// Converts uniform random words of any generator to random numbers, with the same bits on every
// machine: only IEEE operations, each rounded once, and no library logarithm. Python's
// motley.quantiles gives the same numbers.
#pragma once

#include <array>
#include <cstdint>

namespace motley {

// Uniform: a multiple of 2^-24 from 0 to below 1.
[[nodiscard]] float uniform_number(std::uint32_t word);
// Normal: the quantile of (word + 1/2) / 2^32, rounded to fp32 with an error of at most 0.50001
// ulp. From -6.338 to 6.338, symmetric, never 0.
[[nodiscard]] float normal_number(std::uint32_t word);
// Exponential: -ln((word + 1/2) / 2^32), from 1.16e-10 to 22.88, with the same accuracy.
[[nodiscard]] float exponential_number(std::uint32_t word);
// low + floor(bits / 2^64 * count), exactly. REQUIRES: 1 <= count <= 2^32.
[[nodiscard]] std::int64_t integer_number(std::uint64_t bits,
                                          std::int64_t low,
                                          std::uint64_t count);

// Coefficients of the normal quantile P(x) / Q(x), highest power first, for vectorised evaluation.
// For a probability p let q = p - 1/2. If |q| <= 0.425, the quantile is q P(x) / Q(x) with
// x = 0.180625 - q^2. Otherwise it is P(x) / Q(x) with the sign of q and x = sqrt(-ln r) - 1.6,
// where r = min(p, 1 - p).
struct QuantilePart {
  std::array<double, 8> above;
  std::array<double, 8> below;
};

inline constexpr double kQuantileMiddle = 0.425;
inline constexpr double kQuantileMiddleSquare = 0.180625;
inline constexpr double kQuantileTailOffset = 1.6;
extern const QuantilePart kQuantileOfMiddle;
extern const QuantilePart kQuantileOfTail;

}  // namespace motley
