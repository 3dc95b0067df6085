// PredictionCounts: how many targets of an evaluation a model predicted. Whole numbers, so that
// their sums over micro-batches and ranks do not depend on the order.
#pragma once

#include <cstdint>
#include <optional>

namespace motley {

struct PredictionCounts {
  // The number of highest scores among which the target's counts as predicted for top_five.
  static constexpr int kFive = 5;

  std::int64_t targets = 0;
  std::int64_t first = 0;  // targets with the highest score of all classes
  // Targets among the five highest scores; nullopt for models of at most five classes.
  std::optional<std::int64_t> top_five;

  friend bool operator==(const PredictionCounts&, const PredictionCounts&) = default;
};

// The sum over two disjoint sets of targets. REQUIRES: of one model.
[[nodiscard]] inline PredictionCounts sum_of(const PredictionCounts& a, const PredictionCounts& b) {
  PredictionCounts sum{a.targets + b.targets, a.first + b.first, std::nullopt};
  if (a.top_five && b.top_five) sum.top_five = *a.top_five + *b.top_five;
  return sum;
}

}  // namespace motley
