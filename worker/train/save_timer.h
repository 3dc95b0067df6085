// SaveTimer: when a checkpoint is due by the clock. Rank 0's alone is asked; its vote carries the
// answer, so that all ranks save the same step. Used by the compute thread alone.
#pragma once

#include <functional>
#include <utility>

namespace motley {

class SaveTimer {
 public:
  // `every_s`: seconds from the start, and then from one save to the next; 0 = never due. `now_s`:
  // monotonic, as that of base/clock.h.
  SaveTimer(double every_s, std::function<double()> now_s)
      : every_s_(every_s), now_s_(std::move(now_s)), since_s_(now_s_()) {}

  [[nodiscard]] bool is_due() const { return every_s_ > 0 && now_s_() - since_s_ >= every_s_; }

  // A save begins now, for whatever reason.
  void restart() { since_s_ = now_s_(); }

 private:
  const double every_s_;
  const std::function<double()> now_s_;
  double since_s_;
};

}  // namespace motley
