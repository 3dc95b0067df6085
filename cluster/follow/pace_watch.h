// PaceWatch: notices when a rank computes slower than at the start of the run, because its machine
// got hot, lost its mains or got other work. One owner thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"

namespace motley {

class PaceWatch {
 public:
  explicit PaceWatch(std::vector<std::string> names);  // [Rank]

  // What a rank computed in a step that ended at `at_s`, in order of steps. A line for people, once
  // a run for each rank, when it has become slower for good: when the median of its last kWindow
  // steps has been kSlower times that of its first ones (the very first is left out) for kLasting_s
  // and kLastingSteps, without having been near it meanwhile. REQUIRES: rank has a name.
  [[nodiscard]] std::optional<std::string> add(Rank rank,
                                               std::int64_t step,
                                               double compute_s,
                                               double at_s);

  static constexpr std::size_t kWindow = 5;  // steps
  static constexpr std::int64_t kLastingSteps = 20;
  static constexpr double kLasting_s = 30;
  static constexpr double kSlower = 1.4;
  static constexpr double kRecovered = 1.15;

 private:
  struct Pace {
    std::string name;
    std::int64_t steps = 0;
    std::deque<double> last_s;
    double first_s = 0;  // median of the first steps; 0: not known yet
    std::optional<std::pair<std::int64_t, double>> slow_since;  // step, time
    bool told = false;
  };

  std::vector<Pace> ranks_;
};

}  // namespace motley
