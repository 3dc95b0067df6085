#include "partitioner/shortfall.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace motley {
namespace {

Shortfall of_stage(
    const StageTable& table, int slot, int first, int last, int depth, bool recompute) {
  const int in_flight = table.shape().in_flight(depth);
  std::int64_t needed = table.memory_bytes(slot, first, last, in_flight, false);
  if (recompute) {
    needed = std::min(needed, table.memory_bytes(slot, first, last, in_flight, true));
  }
  const std::int64_t limit = table.cost().slots()[static_cast<std::size_t>(slot)].memory_bytes;
  return {slot, first, last, needed, needed - limit};
}

bool is_worse(const Shortfall& a, const Shortfall& b) {
  return a.missing_bytes > b.missing_bytes;
}

constexpr Shortfall kImpossible{0, 0, 0, 0, std::numeric_limits<std::int64_t>::max()};

}  // namespace

Shortfall shortfall_of(const StageTable& table, const Candidate& candidate, bool recompute) {
  Shortfall worst{0, 0, 0, 0, std::numeric_limits<std::int64_t>::min()};
  const std::size_t stages = candidate.stages.size();
  for (std::size_t i = 0; i < stages; ++i) {
    const int last = i + 1 < stages ? candidate.stages[i + 1].first_layer : table.layer_count();
    const Shortfall stage =
        of_stage(table, candidate.stages[i].slots.front(), candidate.stages[i].first_layer, last,
                 static_cast<int>(stages - i), recompute);
    if (is_worse(stage, worst)) worst = stage;
  }
  return worst;
}

Shortfall smallest_shortfall(const StageTable& table, const SearchSpace& space, bool recompute) {
  const int layers = table.layer_count();
  const int stages = space.stages;
  const int slots = table.slot_count();
  const int depth_max = std::min(stages == 0 ? slots : stages, layers);
  const auto index = [](int i) { return static_cast<std::size_t>(i); };
  // [stages][first layer] least worst shortfall of layers from there on, over the slots seen.
  std::vector<std::vector<Shortfall>> best(index(depth_max) + 1,
                                           std::vector<Shortfall>(index(layers) + 1, kImpossible));
  best[0][index(layers)].missing_bytes = std::numeric_limits<std::int64_t>::min();
  for (int slot = slots - 1; slot >= 0; --slot) {
    if (!space.usable.empty() && !space.usable[index(slot)]) continue;
    for (int depth = depth_max; depth >= 1; --depth) {  // deepest first: a slot is used once
      for (int last = 1; last <= layers; ++last) {
        const Shortfall behind = best[index(depth - 1)][index(last)];
        if (behind.missing_bytes == kImpossible.missing_bytes) continue;
        for (int first = 0; first < last; ++first) {
          Shortfall worst = of_stage(table, slot, first, last, depth, recompute);
          if (is_worse(behind, worst)) worst = behind;
          Shortfall& place = best[index(depth)][index(first)];
          if (is_worse(place, worst)) place = worst;
        }
      }
    }
  }
  Shortfall least = kImpossible;
  for (int depth = 1; depth <= depth_max; ++depth) {
    if (stages != 0 && depth != stages) continue;
    if (is_worse(least, best[index(depth)][0])) least = best[index(depth)][0];
  }
  MOTLEY_CHECK(least.missing_bytes != kImpossible.missing_bytes, "{} stages, {} slots, {} layers",
               stages, slots, layers);
  return least;
}

}  // namespace motley
