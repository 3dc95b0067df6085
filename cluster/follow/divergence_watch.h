// DivergenceWatch: whether a run still learns, or only skips.
//
// A step whose gradient is not finite is skipped on every rank and changes nothing. One now and
// then is harmless; many in a row mean that the parameters are lost, and each further step is
// wasted. A loss that jumps is said, too.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>

#include "base/result.h"
#include "cluster/follow/metrics.h"

namespace motley {

class DivergenceWatch {
 public:
  // max_skipped: skipped steps in a row that end the run; 0 = none do.
  explicit DivergenceWatch(int max_skipped) : max_skipped_(max_skipped) {}

  // A line to say at the first of each row of skipped steps. kDiverged once too many were skipped
  // in a row. A step without targets neither lengthens a row nor ends it.
  [[nodiscard]] Result<std::optional<std::string>> add(const StepMetrics& metrics);

 private:
  int max_skipped_;
  int in_a_row_ = 0;
};

// Notices when the loss jumps. Judged by the run's own noise, so that a run whose loss varies as it
// did before is left in peace; before so many steps are known, by the loss that it began with. One
// owner thread.
class LossWatch {
 public:
  // A line for people at the first step of a spike: when the loss lies above the median of the last
  // kWindow steps by kNoises times as much as any of them is away from it, and by a tenth of it and
  // kLeast nats. The spike is over when the loss is back, or after kWindow steps, when it is what
  // is usual. Before kWindow steps are known, one line when it
  // was kRise times that of step 1 for kRisenSteps in a row.
  [[nodiscard]] std::optional<std::string> add(const StepMetrics& metrics);

  static constexpr std::size_t kWindow = 32;  // steps
  static constexpr double kNoises = 4;
  static constexpr double kLeastShare = 0.1;
  static constexpr double kLeast = 0.05;
  static constexpr double kRise = 2;
  static constexpr int kRisenSteps = 3;

 private:
  [[nodiscard]] std::optional<std::string> judge_begin(const StepMetrics& metrics);

  std::deque<double> last_;      // losses of the steps before, without a spike's
  std::size_t spike_steps_ = 0;  // of the spike that is on; 0 = none is
  std::optional<double> first_;  // loss of step 1, until a rise was said
  int risen_steps_ = 0;          // in a row
};

}  // namespace motley
