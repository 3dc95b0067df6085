#include "partitioner/search/tied_ends.h"

#include <optional>
#include <utility>

namespace motley {
namespace {

std::optional<Candidate> head_to_front(Candidate candidate, int layer_count) {
  std::vector<StageChoice>& stages = candidate.stages;
  const int head = layer_count - 1;
  StageChoice stage = stages.front();
  if (stage.slots.size() != 1) return std::nullopt;
  if (stages.back().first_layer == head) {
    if (stages[stages.size() - 2].first_layer + 1 >= head) return std::nullopt;
    --stages.back().first_layer;
  }
  stage.first_layer = head;
  stages.back().codec = stages.front().codec;
  stages.push_back(std::move(stage));
  return candidate;
}

std::optional<Candidate> embedding_to_back(Candidate candidate, int layer_count) {
  std::vector<StageChoice>& stages = candidate.stages;
  StageChoice stage = stages.back();
  if (stage.slots.size() != 1) return std::nullopt;
  if (stages[1].first_layer == 1) {
    const int behind = stages.size() > 2 ? stages[2].first_layer : layer_count;
    if (behind <= 2) return std::nullopt;
    ++stages[1].first_layer;
  }
  stage.codec = stages.front().codec;
  stage.first_layer = 0;
  stages.front().first_layer = 1;
  stages.insert(stages.begin(), std::move(stage));
  return candidate;
}

}  // namespace

std::vector<Candidate> tied_end_candidates(const Candidate& candidate, int layer_count) {
  std::vector<Candidate> found;
  if (candidate.stages.size() < 2) return found;
  for (auto folded :
       {head_to_front(candidate, layer_count), embedding_to_back(candidate, layer_count)}) {
    if (folded) found.push_back(*std::move(folded));
  }
  return found;
}

}  // namespace motley
