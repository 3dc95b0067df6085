#include "partitioner/period_search/add_stages.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace motley {
namespace {

bool takes_slot(const Candidate& candidate, int slot) {
  return std::ranges::any_of(candidate.stages, [&](const StageChoice& stage) {
    return std::ranges::find(stage.slots, slot) != stage.slots.end();
  });
}

// The candidate with the first or the last layer of stage i on the slot; nullopt if the stage has
// no other layer.
std::optional<Candidate> with_layer_of(
    const Candidate& candidate, std::size_t i, bool last, int slot, int layer_count) {
  const std::vector<StageChoice>& stages = candidate.stages;
  const int end = i + 1 < stages.size() ? stages[i + 1].first_layer : layer_count;
  if (end - stages[i].first_layer < 2) return std::nullopt;
  Candidate changed = candidate;
  StageChoice added = stages[i];
  added.slots = {slot};
  // The boundary inside the former stage has the codec of the one behind it.
  if (last) {
    added.first_layer = end - 1;
  } else {
    ++changed.stages[i].first_layer;
  }
  const auto place = static_cast<std::ptrdiff_t>(last ? i + 1 : i);
  changed.stages.insert(changed.stages.begin() + place, std::move(added));
  return changed;
}

bool add_stage(const StepEstimate& estimate, const std::vector<int>& slots, Candidate& candidate) {
  for (const int slot : slots) {
    if (takes_slot(candidate, slot)) continue;
    std::optional<Candidate> best;
    for (std::size_t i = 0; i < candidate.stages.size(); ++i) {
      for (const bool last : {false, true}) {
        auto changed = with_layer_of(candidate, i, last, slot, estimate.table().layer_count());
        if (!changed || !estimate.rate(*changed)) continue;
        if (!best || changed->estimate_s < best->estimate_s) best = std::move(changed);
      }
    }
    if (!best) continue;
    candidate = *std::move(best);
    return true;
  }
  return false;
}

}  // namespace

bool add_stages(const StepEstimate& estimate,
                const std::vector<int>& slots,
                int stages,
                Candidate& candidate) {
  while (static_cast<int>(candidate.stages.size()) < stages) {
    if (!add_stage(estimate, slots, candidate)) return false;
  }
  return true;
}

}  // namespace motley
