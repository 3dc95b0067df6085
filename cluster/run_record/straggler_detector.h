// StragglerDetector: detects stragglers: a rank that computes slower than at the start of the run,
// because its machine is throttled, runs on battery or has other load. One owner thread.
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

class StragglerDetector {
 public:
  explicit StragglerDetector(std::vector<std::string> names);  // [Rank]

  // Adds a rank's compute time of a step that ended at `at_s`, in order of steps. Returns a
  // message, once per rank and run, if it has become slower permanently: the median of its last
  // kWindow steps was at least kSlower times that of its first ones (without the very first) for
  // kPersistent_s and kPersistentSteps, and not below kRecovered meanwhile. REQUIRES: rank has a
  // name.
  [[nodiscard]] std::optional<std::string> add(Rank rank,
                                               std::int64_t step,
                                               double compute_s,
                                               double at_s);

  static constexpr std::size_t kWindow = 5;  // steps
  static constexpr std::int64_t kPersistentSteps = 20;
  static constexpr double kPersistent_s = 30;
  static constexpr double kSlower = 1.4;
  static constexpr double kRecovered = 1.15;

 private:
  struct RankProgress {
    std::string name;
    std::int64_t steps = 0;
    std::deque<double> last_s;
    double first_s = 0;  // median of the first steps; 0: unknown yet
    std::optional<std::pair<std::int64_t, double>> slow_since;  // step, time
    bool is_reported = false;
  };

  std::vector<RankProgress> ranks_;
};

}  // namespace motley
