// TargetMonitor: detects global batches without a target. A loss with an ignore_index, or one that
// counts its own terms, may count none in a batch: the step changes nothing, which is harmless, but
// its frequency is reported.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "record/step_metrics.h"

namespace motley {

// One owner thread.
class TargetMonitor {
 public:
  // Returns a message at the first step without targets, and one at the first evaluation without.
  [[nodiscard]] std::optional<std::string> add(const StepMetrics& metrics);

  // A message with the number of such steps, if more than one had no targets.
  [[nodiscard]] std::optional<std::string> summary() const;

  [[nodiscard]] std::int64_t steps_without() const { return without_; }

 private:
  std::int64_t steps_ = 0;
  std::int64_t without_ = 0;
  bool warned_of_evaluation_ = false;
};

}  // namespace motley
