// StepWindows: collects the ranks' step reports in windows long enough to evaluate a plan. One
// owner thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "partitioner/report/calibration.h"
#include "plan/plan.h"
#include "protocol/protocol.h"

namespace motley {

class StepWindows {
 public:
  // The first kFirst steps show an error of the plan. The windows then double: a later change must
  // last to count.
  static constexpr std::size_t kFirst = 8;
  static constexpr std::size_t kLongest = 1024;

  explicit StepWindows(const Plan& plan) : ranks_(plan.ranks.size()) {}

  // Returns the medians of a window once every rank has reported all of its steps, and starts the
  // next one. The first step of a launch is excluded, because it touches all memory for the first
  // time. `plan` of the result is empty. REQUIRES: the rank is one of the plan; its steps come in
  // order.
  [[nodiscard]] std::optional<RunMeasurement> add(Rank rank, const StepReport& report);

  // Discards the current window after a disturbance.
  void restart_window();

 private:
  struct RankWindow {
    std::vector<double> busy_s;
    std::vector<double> step_s;
    std::int64_t memory_bytes = 0;  // the maximum
    bool has_begun = false;
  };

  std::vector<RankWindow> ranks_;  // [Rank]
  std::size_t window_ = kFirst;
};

}  // namespace motley
