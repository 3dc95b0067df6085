#include "partitioner/fold.h"

#include <utility>

namespace motley {

std::optional<Candidate> fold(const Candidate& candidate, int layer_count) {
  Candidate folded = candidate;
  std::vector<StageChoice>& stages = folded.stages;
  if (stages.size() < 2 || stages.front().slots.size() != 1) return std::nullopt;
  const int last_layer = layer_count - 1;
  if (stages.back().first_layer == last_layer) {
    if (stages[stages.size() - 2].first_layer + 1 >= last_layer) return std::nullopt;
    --stages.back().first_layer;
  }
  StageChoice head;
  head.slots = stages.front().slots;
  head.shares = stages.front().shares;
  head.first_layer = last_layer;
  stages.back().codec = stages.front().codec;
  stages.push_back(std::move(head));
  return folded;
}

}  // namespace motley
