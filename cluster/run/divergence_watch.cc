#include "cluster/run/divergence_watch.h"

#include <fmt/format.h>

#include <utility>

namespace motley {

Result<std::optional<std::string>> DivergenceWatch::add(const StepMetrics& metrics) {
  in_a_row_ = metrics.skipped ? in_a_row_ + 1 : 0;
  if (!metrics.skipped) return std::optional<std::string>();
  if (max_skipped_ > 0 && in_a_row_ >= max_skipped_) {
    return Error{ErrorCode::kDiverged,
                 fmt::format("the training diverged: {} steps in a row were skipped, the last one "
                             "step {}",
                             in_a_row_, metrics.step),
                 "their gradients were infinite or not a number, so the parameters have stayed as "
                 "they were",
                 "lower train.lr, set train.clip or lengthen train.warmup_steps; train.max_skipped "
                 "sets how many steps are too many"};
  }
  if (std::exchange(told_, true)) return std::optional<std::string>();
  const std::string end =
      max_skipped_ > 0 ? fmt::format("; {} in a row end the run (train.max_skipped)", max_skipped_)
                       : "";
  return std::optional(fmt::format(
      "step {} was skipped: a gradient was not finite, and nothing changed. Later ones are marked "
      "in metrics.jsonl{}",
      metrics.step, end));
}

}  // namespace motley
