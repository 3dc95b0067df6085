// Random numbers of uniform words from any generator. Each has the same bits on every machine: IEEE
// operations alone, each rounded once, and no library's logarithm. Python's motley.quantiles makes
// the same.
#pragma once

#include <array>
#include <cstdint>

namespace motley {

// Uniform: a multiple of 2^-24 from 0 to below 1.
[[nodiscard]] float uniform_number(std::uint32_t word);
// Normal: the quantile of (word + 1/2) / 2^32, rounded to fp32 (0.50001 units in the last place
// off at most). From -6.338 to 6.338, symmetric, never 0.
[[nodiscard]] float normal_number(std::uint32_t word);
// Exponential: -ln((word + 1/2) / 2^32), from 1.16e-10 to 22.88, as exact.
[[nodiscard]] float exponential_number(std::uint32_t word);
// low + floor(bits / 2^64 * count), exactly. REQUIRES: 1 <= count <= 2^32.
[[nodiscard]] std::int64_t integer_number(std::uint64_t bits,
                                          std::int64_t low,
                                          std::uint64_t count);

// The polynomials of the normal quantile, from the highest power, for those who evaluate them on
// many numbers at once: with q the probability minus 1/2, q P(x) / Q(x) of x = 0.180625 - q^2 for
// |q| <= 0.425; else with the sign of q P(x) / Q(x) of x = sqrt(-ln r) - 1.6, r the smaller of the
// probability and 1 minus it.
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
