// DataTimeMonitor: detects a training that waits for its data: a rank that spends much of its steps
// reading samples. One owner thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"

namespace motley {

class DataTimeMonitor {
 public:
  explicit DataTimeMonitor(std::vector<std::string> names);  // [Rank]

  // Adds the time in which a rank read samples in a step, in order of steps. Returns a message,
  // once per rank and run, if the medians of kWindow steps (without the very first) make it at
  // least kShare of a step. REQUIRES: rank has a name.
  [[nodiscard]] std::optional<std::string> add(Rank rank, double data_s, double step_s);

  static constexpr std::size_t kWindow = 10;  // steps
  static constexpr double kShare = 0.1;

 private:
  struct RankSteps {
    std::string name;
    bool has_begun = false;
    std::vector<double> data_s;
    std::vector<double> step_s;
    bool is_reported = false;
  };

  std::vector<RankSteps> ranks_;
};

}  // namespace motley
