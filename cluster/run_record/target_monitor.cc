#include "cluster/run_record/target_monitor.h"

#include <fmt/format.h>

namespace motley {

std::optional<std::string> TargetMonitor::add(const StepMetrics& metrics) {
  ++steps_;
  if (metrics.without_targets && without_++ == 0) {
    return fmt::format(
        "step {} has no targets, so no parameter changed: the loss counts none in its global "
        "batch, such as when all are its ignore_index or of classes with weight 0; further such "
        "steps are counted, not "
        "reported",
        metrics.step);
  }
  if (metrics.eval_without_targets && !warned_of_evaluation_) {
    warned_of_evaluation_ = true;
    return fmt::format(
        "the evaluation at step {} has no loss: its held-out batches have no targets for the loss; "
        "check the held-out targets, or raise train.eval_batches",
        metrics.step);
  }
  return std::nullopt;
}

std::optional<std::string> TargetMonitor::summary() const {
  if (without_ < 2) return std::nullopt;
  return fmt::format("{} of {} steps had no targets and did not change the parameters{}", without_,
                     steps_, without_ == steps_ ? ": the model was not trained" : "");
}

}  // namespace motley
