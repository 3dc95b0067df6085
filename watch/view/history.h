// History: the series of all steps of a run, in bounded memory. If a run has more steps than fit,
// early steps are thinned; the extremes of the loss are retained.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/json_fwd.h"
#include "record/step_metrics.h"

namespace motley {

class History {
 public:
  // A step number that is not above the last one replaces all steps from there on: the run was
  // resumed from a checkpoint.
  void add(const StepMetrics& metrics);

  void clear();

  // {"step": […], "loss": […], "step_s", "tokens_per_s", "bubble", "lr", "eval": [[step, loss],
  // …]}, each of at most `points` values, only for steps after `after`. Thinning retains the steps
  // with the minimum and the maximum loss of each interval, and the first and last step.
  [[nodiscard]] Json columns(std::size_t points, std::int64_t after = 0) const;

  [[nodiscard]] std::size_t size() const { return rows_.size(); }

  static constexpr std::size_t kRowsMax = std::size_t{1} << 17;
  static constexpr std::size_t kPointsMin = 4;

  struct Row {
    std::int64_t step = 0;
    double loss = 0;
    double step_s = 0;
    double tokens_per_s = 0;
    double bubble = 0;
    double lr = 0;
  };

 private:
  std::vector<Row> rows_;   // steps ascend
  std::vector<Row> evals_;  // held-out loss; only step and loss are set
};

// Thins the rows to at most `points`, in order. REQUIRES: points >= History::kPointsMin.
[[nodiscard]] std::vector<History::Row> thinned(const std::vector<History::Row>& rows,
                                                std::size_t points);

}  // namespace motley
