// TrialMemo: the steps of the changed plans that were simulated, over all searches for one plan.
// Descents meet often, and the searches with other codecs meet again.
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
  // What tells a candidate from all others that one plan is searched among. REQUIRES: cost models
  // that differ in the codec of gradients alone.
  using Key = std::vector<int>;

  [[nodiscard]] Key key_of(const CostModel& cost,
                           const SearchSpace& space,
                           const StepShape& shape,
                           const Candidate& candidate);

  // Nothing where it was not tried.
  [[nodiscard]] std::optional<double> step_s(const Key& key) const;

  // step_s: infinite where it does not fit.
  void note(Key key, double step_s) { steps_s_.insert_or_assign(std::move(key), step_s); }

 private:
  [[nodiscard]] int number_of(const std::string& codec);

  std::vector<std::string> codecs_;  // [number]
  std::map<Key, double> steps_s_;
};

}  // namespace motley
