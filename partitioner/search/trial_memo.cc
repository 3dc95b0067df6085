#include "partitioner/search/trial_memo.h"

#include <algorithm>

namespace motley {

TrialMemo::Key TrialMemo::key_of(const CostModel& cost,
                                 const SearchSpace& space,
                                 const StepShape& shape,
                                 const Candidate& candidate) {
  Key key = {number_of(cost.gradient_codec()), shape.micro_batch, static_cast<int>(shape.schedule),
             shape.warm_up};
  for (const StageChoice& stage : candidate.stages) {
    const int codec = number_of(space.codecs[static_cast<std::size_t>(stage.codec)]);
    key.insert(key.end(), {-1, stage.first_layer, stage.recompute, codec});
    key.insert(key.end(), stage.slots.begin(), stage.slots.end());
    key.insert(key.end(), stage.batch_split.begin(), stage.batch_split.end());
  }
  return key;
}

std::optional<double> TrialMemo::step_s(const Key& key) const {
  const auto known = steps_s_.find(key);
  return known == steps_s_.end() ? std::nullopt : std::optional(known->second);
}

int TrialMemo::number_of(const std::string& codec) {
  const auto found = std::ranges::find(codecs_, codec);
  const auto number = static_cast<int>(found - codecs_.begin());
  if (found == codecs_.end()) codecs_.push_back(codec);
  return number;
}

}  // namespace motley
