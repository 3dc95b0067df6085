// TargetWatch: global batches without a target. A loss with an ignore_index, or one that counts its
// own terms, may find nothing to learn from in a batch: the step changes nothing, which is no
// damage, but people should know how often it happens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cluster/follow/metrics.h"

namespace motley {

// One owner thread.
class TargetWatch {
 public:
  // A line for people at the first step without targets, and one at the first evaluation without.
  [[nodiscard]] std::optional<std::string> add(const StepMetrics& metrics);

  // Of the steps so far, when more than one had no targets.
  [[nodiscard]] std::optional<std::string> summary() const;

  [[nodiscard]] std::int64_t steps_without() const { return without_; }

 private:
  std::int64_t steps_ = 0;
  std::int64_t without_ = 0;
  bool told_evaluation_ = false;
};

}  // namespace motley
