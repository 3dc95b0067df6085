// DivergenceDetector: detects a run that skips its steps instead of learning.
//
// A step with a non-finite gradient is skipped on every rank and changes nothing. A single one is
// harmless; many in a row mean that the parameters are lost, and further steps are wasted. A loss
// that jumps is also reported (LossMonitor).
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>

#include "base/result.h"
#include "record/step_metrics.h"

namespace motley {

class DivergenceDetector {
 public:
  // max_skipped: the number of skipped steps in a row that ends the run; 0 = unlimited.
  explicit DivergenceDetector(int max_skipped) : max_skipped_(max_skipped) {}

  // Returns a message at the first of each row of skipped steps. kDiverged once too many were
  // skipped in a row. A step without targets neither lengthens a row nor ends it.
  [[nodiscard]] Result<std::optional<std::string>> add(const StepMetrics& metrics);

 private:
  int max_skipped_;
  int in_a_row_ = 0;
};

// LossMonitor: detects jumps of the loss, relative to the run's own noise, so that a loss that
// varies as before is not reported. While too few steps are known, it compares with the first loss.
// One owner thread.
class LossMonitor {
 public:
  // Returns a message at the first step of a spike. A spike is a loss above the median of the last
  // kWindow steps by kNoises times the largest deviation of any of them, by kLeastShare of the
  // median and by kLeast nats. It ends when the loss is back, or after kWindow steps, when the new
  // level counts as normal. Before kWindow steps are known: one message if the loss was more than
  // kRise times that of step 1 for kRisenSteps in a row.
  [[nodiscard]] std::optional<std::string> add(const StepMetrics& metrics);

  static constexpr std::size_t kWindow = 32;  // steps
  static constexpr double kNoises = 4;
  static constexpr double kLeastShare = 0.1;
  static constexpr double kLeast = 0.05;
  static constexpr double kRise = 2;
  static constexpr int kRisenSteps = 3;

 private:
  [[nodiscard]] std::optional<std::string> assess_begin(const StepMetrics& metrics);

  std::deque<double> last_;      // losses of the previous steps, without a spike's
  std::size_t spike_steps_ = 0;  // of the current spike; 0 = none
  std::optional<double> first_;  // loss of step 1, until a rise was reported
  int risen_steps_ = 0;          // in a row
};

}  // namespace motley
