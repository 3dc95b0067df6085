// StageClock: the completion times of work that the compute thread submits. On the processor, work
// is complete when submitted; a device completes it later and asynchronously. Used by the compute
// thread alone.
#pragma once

#include <utility>
#include <vector>

#include "base/clock.h"

namespace motley {

class StageClock {
 public:
  virtual ~StageClock() = default;

  // Marks the work submitted so far.
  virtual void mark() = 0;

  // Completion times of marks that were reached and not returned before, in order, in seconds of
  // now_s(). Does not wait.
  [[nodiscard]] virtual std::vector<double> reached() = 0;

  // Waits until all marks are reached.
  virtual void finish() = 0;
};

// For stages that the compute thread itself computes.
class HostClock final : public StageClock {
 public:
  void mark() override { times_s_.push_back(now_s()); }

  [[nodiscard]] std::vector<double> reached() override { return std::exchange(times_s_, {}); }

  void finish() override {}

 private:
  std::vector<double> times_s_;
};

}  // namespace motley
