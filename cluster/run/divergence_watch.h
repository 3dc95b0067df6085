// DivergenceWatch: whether a run still learns, or only skips.
//
// A step whose gradient is not finite is skipped on every rank and changes nothing. One now and
// then is harmless; many in a row mean that the parameters are lost, and each further step is
// wasted.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cluster/run/metrics.h"

namespace motley {

class DivergenceWatch {
 public:
  // max_skipped: skipped steps in a row that end the run; 0 = none do.
  explicit DivergenceWatch(int max_skipped) : max_skipped_(max_skipped) {}

  // A line to say at the first skipped step of the run, and at no other. kDiverged once too many
  // were skipped in a row.
  [[nodiscard]] Result<std::optional<std::string>> add(const StepMetrics& metrics);

 private:
  int max_skipped_;
  int in_a_row_ = 0;
  bool told_ = false;
};

}  // namespace motley
