// StepWindows: what the ranks tell of their steps, in windows that a plan can be judged by. One
// owner thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "partitioner/advise/calibration.h"
#include "plan/plan.h"
#include "protocol/protocol.h"

namespace motley {

class StepWindows {
 public:
  // kFirst steps decide where the plan is wrong from the beginning; windows then double, as what
  // comes later is a change, which must last.
  static constexpr std::size_t kFirst = 8;
  static constexpr std::size_t kLongest = 1024;

  explicit StepWindows(const Plan& plan) : ranks_(plan.ranks.size()) {}

  // The medians of a window once every rank has told all of its steps; the next one begins then.
  // The first step of a launch touches all memory for the first time, and is in none. `plan` of
  // what comes back is left empty. REQUIRES: the rank is one of the plan; its steps come in order.
  [[nodiscard]] std::optional<RunMeasurement> add(Rank rank, const StepReport& report);

  // Forgets the window under way, which something has disturbed.
  void begin_anew();

 private:
  struct Told {
    std::vector<double> busy_s;
    std::vector<double> step_s;
    std::int64_t memory_bytes = 0;  // the most
    bool has_begun = false;
  };

  std::vector<Told> ranks_;  // [Rank]
  std::size_t window_ = kFirst;
};

}  // namespace motley
