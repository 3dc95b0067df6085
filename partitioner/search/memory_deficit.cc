#include "partitioner/search/memory_deficit.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/check.h"
#include "partitioner/cost/at.h"

namespace motley {
namespace {

MemoryDeficit of_stage(
    const StageTable& table, int slot, int first, int last, int depth, bool recompute) {
  const int in_flight = table.shape().in_flight(depth);
  std::int64_t needed = table.memory_bytes(slot, first, last, in_flight, false);
  if (recompute) {
    needed = std::min(needed, table.memory_bytes(slot, first, last, in_flight, true));
  }
  const std::int64_t limit = table.cost().slots()[static_cast<std::size_t>(slot)].memory_bytes;
  return {slot, first, last, needed, needed - limit};
}

bool is_worse(const MemoryDeficit& a, const MemoryDeficit& b) {
  return a.missing_bytes > b.missing_bytes;
}

// In the given order.
std::vector<int> slots_to_try(const StageTable& table, const SearchSpace& space) {
  constexpr std::size_t kSlotsMax = 32;
  std::vector<int> slots;
  for (int slot = 0; slot < table.slot_count(); ++slot) {
    if (space.usable.empty() || space.usable[at(slot)]) slots.push_back(slot);
  }
  const std::size_t keep = std::max(kSlotsMax, at(space.stages));
  if (slots.size() <= keep) return slots;
  const auto has_more = [&](int a, int b) {
    return table.cost().slots()[at(a)].memory_bytes > table.cost().slots()[at(b)].memory_bytes;
  };
  std::stable_sort(slots.begin(), slots.end(), has_more);
  slots.resize(keep);
  std::sort(slots.begin(), slots.end());
  return slots;
}

// First layers of stages, and the end of the model.
std::vector<int> cuts_to_try(int layers, int stages) {
  constexpr int kCutsMax = 200;
  const int stride = std::max(1, std::min(layers / kCutsMax, layers / std::max(1, stages)));
  std::vector<int> cuts;
  for (int layer = 0; layer < layers; layer += stride) cuts.push_back(layer);
  cuts.push_back(layers);
  return cuts;
}

constexpr MemoryDeficit kImpossible{0, 0, 0, 0, std::numeric_limits<std::int64_t>::max()};

}  // namespace

MemoryDeficit memory_deficit_of(const StageTable& table,
                                const Candidate& candidate,
                                bool recompute) {
  MemoryDeficit worst{0, 0, 0, 0, std::numeric_limits<std::int64_t>::min()};
  const std::size_t stages = candidate.stages.size();
  for (std::size_t i = 0; i < stages; ++i) {
    const int last = i + 1 < stages ? candidate.stages[i + 1].first_layer : table.layer_count();
    const MemoryDeficit stage =
        of_stage(table, candidate.stages[i].slots.front(), candidate.stages[i].first_layer, last,
                 static_cast<int>(stages - i), recompute);
    if (is_worse(stage, worst)) worst = stage;
  }
  return worst;
}

MemoryDeficit smallest_memory_deficit(const StageTable& table,
                                      const SearchSpace& space,
                                      bool recompute) {
  const std::vector<int> slots = slots_to_try(table, space);
  const std::vector<int> cuts = cuts_to_try(table.layer_count(), space.stages);
  const int stages = space.stages;
  const int depth_max =
      static_cast<int>(std::min(stages == 0 ? slots.size() : at(stages), cuts.size() - 1));
  const std::size_t end = cuts.size() - 1;
  // [stages][cut] the least worst deficit of layers from there on, over the slots seen.
  std::vector<std::vector<MemoryDeficit>> best(
      at(depth_max) + 1, std::vector<MemoryDeficit>(cuts.size(), kImpossible));
  best[0][end].missing_bytes = std::numeric_limits<std::int64_t>::min();
  for (auto slot = slots.rbegin(); slot != slots.rend(); ++slot) {
    for (int depth = depth_max; depth >= 1; --depth) {  // deepest first: a slot is used once
      for (std::size_t last = 1; last <= end; ++last) {
        const MemoryDeficit behind = best[at(depth - 1)][last];
        if (behind.missing_bytes == kImpossible.missing_bytes) continue;
        for (std::size_t first = 0; first < last; ++first) {
          MemoryDeficit worst = of_stage(table, *slot, cuts[first], cuts[last], depth, recompute);
          if (is_worse(behind, worst)) worst = behind;
          MemoryDeficit& place = best[at(depth)][first];
          if (is_worse(place, worst)) place = worst;
        }
      }
    }
  }
  MemoryDeficit least = kImpossible;
  for (int depth = 1; depth <= depth_max; ++depth) {
    if (stages != 0 && depth != stages) continue;
    if (is_worse(least, best[at(depth)][0])) least = best[at(depth)][0];
  }
  MOTLEY_CHECK(least.missing_bytes != kImpossible.missing_bytes, "{} stages, {} slots, {} layers",
               stages, slots.size(), table.layer_count());
  return least;
}

}  // namespace motley
