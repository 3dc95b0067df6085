// The random numbers that a layer of a package draws, as its graphs ask for them, and their values
// for bits from any generator. Pure functions; docs/formats/package.md has the operations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/package/graph.h"

namespace motley {

enum class DrawKind { kUniform, kNormal, kExponential, kIntegers };

// Of the operation "motley::normal", …; nothing for others.
[[nodiscard]] std::optional<DrawKind> draw_kind(std::string_view operation);

// What a node draws.
struct DrawnNumbers {
  DrawKind kind = DrawKind::kUniform;
  std::vector<BatchInteger> sizes;
  std::int64_t low = 0;     // integers are from low
  std::uint64_t count = 1;  // to below low + count; at most 2^32
  int index = 0;            // in the layer

  // The first dimension that grows with the batch; nothing where all samples share the numbers.
  [[nodiscard]] std::optional<std::size_t> batch_dim() const;
  // With so many samples; nothing where a size is negative, or all are more than a tensor may have.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> sizes_of(std::int64_t samples) const;
};

// Why a node with such an operation is none, or "".
[[nodiscard]] std::string draw_fault(const Node& node);

// REQUIRES: draw_kind(node.operation) is a kind and draw_fault(node) is "".
[[nodiscard]] DrawnNumbers draw_of(const Node& node);

// The number of a uniform word. Each has the same bits on every machine: IEEE operations alone, each
// rounded once, and no library's logarithm.
//
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
  double above[8];
  double below[8];
};
inline constexpr double kQuantileMiddle = 0.425;
inline constexpr double kQuantileMiddleSquare = 0.180625;
inline constexpr double kQuantileTailOffset = 1.6;
extern const QuantilePart kQuantileOfMiddle;
extern const QuantilePart kQuantileOfTail;

}  // namespace motley
