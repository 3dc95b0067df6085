// History: what is shown of all steps of a run, in bounded memory: of a run that is longer than
// fits, fewer and fewer of its early steps, those with the extremes of the loss among them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/json_fwd.h"
#include "cluster/follow/metrics.h"

namespace motley {

class History {
 public:
  // A step of a number that is not above the last one's takes the place of all from there on: the
  // run has gone back to a checkpoint.
  void add(const StepMetrics& metrics);

  void clear();

  // {"step": […], "loss": […], "step_s", "tokens_per_s", "bubble", "lr", "eval": [[step, loss],
  // …]}, each of at most `points` values, steps after `after` only. Of as many steps as make a
  // point those with the least and the greatest loss are kept, and the first and the last of all.
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
  std::vector<Row> evals_;  // of the held-out loss; step and loss alone
};

// As many of the rows, in their order: REQUIRES: points >= History::kPointsMin.
[[nodiscard]] std::vector<History::Row> thinned(const std::vector<History::Row>& rows,
                                                std::size_t points);

}  // namespace motley
