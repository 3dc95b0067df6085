// TrialMemo: a cache of simulated steps of changed plans, over all searches for one plan. Local
// searches often meet, also those with different codecs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "partitioner/cost/cost_model.h"
#include "partitioner/cost/search_space.h"
#include "partitioner/cost/stage_table.h"

namespace motley {

class TrialMemo {
 public:
  // Identifies a candidate among all that are searched for one plan. REQUIRES: cost models that
  // differ only in the codec of gradients.
  using Key = std::vector<int>;

  [[nodiscard]] Key key_of(const CostModel& cost,
                           const SearchSpace& space,
                           const StepShape& shape,
                           const Candidate& candidate);

  // nullopt if it was not tried.
  [[nodiscard]] std::optional<double> step_s(const Key& key) const;

  // step_s: infinite if it does not fit.
  void note(Key key, double step_s) { steps_s_.insert_or_assign(std::move(key), step_s); }

 private:
  [[nodiscard]] int number_of(const std::string& codec);

  std::vector<std::string> codecs_;  // [number]
  std::map<Key, double> steps_s_;
};

}  // namespace motley
