// StageClock: the completion times of work that the compute thread submits. On the processor, work
// is complete when submitted; a device completes it later and asynchronously. Used by the compute
// thread alone.
#pragma once

#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/throttle/compute_throttle.h"

namespace motley {

class StageClock {
 public:
  virtual ~StageClock() = default;

  // Marks the beginning of work.
  virtual void begin() = 0;

  // Marks the work submitted since the last mark, before which the thread first waited `waited_s`
  // for other ranks.
  virtual void mark(double waited_s) = 0;

  // Completion times of marks that were reached and not returned before, in order, in seconds of
  // now_s(). Does not wait.
  [[nodiscard]] virtual std::vector<double> reached() = 0;

  // Waits until all marks are reached.
  virtual void finish() = 0;
};

// For stages that the compute thread itself computes, at the speed that the throttle permits.
class HostClock final : public StageClock {
 public:
  explicit HostClock(ComputeThrottle throttle) : throttle_(throttle) {}

  void begin() override {
    throttle_.begin();
    times_s_.push_back(now_s());
  }

  void mark(double waited_s) override {
    throttle_.end(waited_s);
    times_s_.push_back(now_s());
  }

  [[nodiscard]] std::vector<double> reached() override { return std::exchange(times_s_, {}); }

  void finish() override {}

 private:
  ComputeThrottle throttle_;
  std::vector<double> times_s_;
};

}  // namespace motley
