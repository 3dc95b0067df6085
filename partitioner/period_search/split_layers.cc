#include "partitioner/period_search/split_layers.h"

#include <utility>

namespace motley {
namespace {

// The slots of a stage are ascending.
void add_slot(StageChoice& stage, int slot, int taken) {
  const bool behind = stage.slots.front() < slot;
  stage.batch_split.front() -= taken;
  stage.slots.insert(behind ? stage.slots.end() : stage.slots.begin(), slot);
  stage.batch_split.insert(behind ? stage.batch_split.end() : stage.batch_split.begin(), taken);
}

// The last layer of stage i, also on `slot`.
Candidate share_last(Candidate candidate, std::size_t i, int end, int slot, int taken) {
  std::vector<StageChoice>& stages = candidate.stages;
  if (stages[i].first_layer + 1 < end) {
    StageChoice shared = stages[i];
    shared.first_layer = end - 1;
    ++i;
    stages.insert(stages.begin() + static_cast<std::ptrdiff_t>(i), std::move(shared));
  }
  add_slot(stages[i], slot, taken);
  return candidate;
}

// The first layer of stage i, also on `slot`, which is the previous stage's.
Candidate share_first(Candidate candidate, std::size_t i, int end, int slot, int taken) {
  std::vector<StageChoice>& stages = candidate.stages;
  if (stages[i].first_layer + 1 < end) {
    StageChoice rest = stages[i];
    ++rest.first_layer;
    stages.insert(stages.begin() + static_cast<std::ptrdiff_t>(i) + 1, std::move(rest));
    stages[i].codec = stages[i - 1].codec;
  }
  add_slot(stages[i], slot, taken);
  return candidate;
}

int end_of(const std::vector<StageChoice>& stages, std::size_t i, int layer_count) {
  return i + 1 < stages.size() ? stages[i + 1].first_layer : layer_count;
}

// Whether a layer at the boundary behind stage i may be shared: by two slots that are single so
// far.
bool may_share(const std::vector<StageChoice>& stages, std::size_t i) {
  const StageChoice& before = stages[i];
  const StageChoice& behind = stages[i + 1];
  return before.slots.size() == 1 && behind.slots.size() == 1 && before.slots != behind.slots;
}

}  // namespace

std::vector<Candidate> split_layers(const Candidate& candidate, int layer_count, int taken) {
  std::vector<Candidate> found;
  const std::vector<StageChoice>& stages = candidate.stages;
  for (std::size_t i = 0; i + 1 < stages.size(); ++i) {
    if (!may_share(stages, i)) continue;
    const int before = stages[i].slots.front();
    const int behind = stages[i + 1].slots.front();
    found.push_back(share_last(candidate, i, end_of(stages, i, layer_count), behind, taken));
    found.push_back(
        share_first(candidate, i + 1, end_of(stages, i + 1, layer_count), before, taken));
  }
  return found;
}

std::vector<Candidate> layers_split_on_both_sides(const Candidate& candidate,
                                                  int layer_count,
                                                  int first,
                                                  int second) {
  std::vector<Candidate> found;
  const std::vector<StageChoice>& stages = candidate.stages;
  for (std::size_t i = 0; i + 2 < stages.size(); ++i) {
    if (!may_share(stages, i) || !may_share(stages, i + 1)) continue;
    const int front = stages[i].slots.front();
    const int middle = stages[i + 1].slots.front();
    const int back = stages[i + 2].slots.front();
    const int front_end = stages[i + 1].first_layer;
    const int middle_end = stages[i + 2].first_layer;
    const int back_end = end_of(stages, i + 2, layer_count);
    // Changes the later stage first, so that earlier indices stay valid.
    found.push_back(share_last(share_first(candidate, i + 2, back_end, middle, second), i,
                               front_end, middle, first));
    if (middle_end - front_end < 2) continue;  // it has no second layer to share
    found.push_back(share_last(share_last(candidate, i + 1, middle_end, back, second), i, front_end,
                               middle, first));
    found.push_back(share_first(share_first(candidate, i + 2, back_end, middle, first), i + 1,
                                middle_end, front, second));
  }
  return found;
}

std::vector<Candidate> shifted_splits(const Candidate& candidate) {
  std::vector<Candidate> found;
  for (std::size_t i = 0; i < candidate.stages.size(); ++i) {
    if (candidate.stages[i].slots.size() != 2) continue;
    for (const std::size_t more : {0U, 1U}) {
      if (candidate.stages[i].batch_split[1 - more] <= 1) continue;
      Candidate shifted = candidate;
      ++shifted.stages[i].batch_split[more];
      --shifted.stages[i].batch_split[1 - more];
      found.push_back(std::move(shifted));
    }
  }
  return found;
}

std::vector<Candidate> moved_cuts(const Candidate& candidate, int layer_count) {
  std::vector<Candidate> found;
  const std::vector<StageChoice>& stages = candidate.stages;
  for (std::size_t i = 1; i < stages.size(); ++i) {
    const int end = i + 1 < stages.size() ? stages[i + 1].first_layer : layer_count;
    for (const int first : {stages[i].first_layer - 1, stages[i].first_layer + 1}) {
      if (first <= stages[i - 1].first_layer || first >= end) continue;
      found.push_back(candidate);
      found.back().stages[i].first_layer = first;
    }
  }
  return found;
}

}  // namespace motley
