// SaveTimer: decides when a checkpoint is due by the clock. Only rank 0's is queried; its vote
// carries the result, so that all ranks save at the same step. Used by the compute thread only.
#pragma once

#include <functional>
#include <utility>

namespace motley {

class SaveTimer {
 public:
  // `every_s`: the interval from the start to the first save, and between saves; 0 = never due.
  // `now_s`: monotonic, as in base/clock.h.
  SaveTimer(double every_s, std::function<double()> now_s)
      : every_s_(every_s), now_s_(std::move(now_s)), since_s_(now_s_()) {}

  [[nodiscard]] bool is_due() const { return every_s_ > 0 && now_s_() - since_s_ >= every_s_; }

  // A save begins now, for any reason.
  void restart() { since_s_ = now_s_(); }

 private:
  const double every_s_;
  const std::function<double()> now_s_;
  double since_s_;
};

}  // namespace motley
