// StageClock: when what the compute thread gave to compute was computed. On the processor that is
// when it was given; a device computes later, and beside the host. Used by the compute thread
// alone.
#pragma once

#include <utility>
#include <vector>

#include "base/clock.h"

namespace motley {

class StageClock {
 public:
  virtual ~StageClock() = default;

  // Marks what was given so far.
  virtual void mark() = 0;

  // Of marks that were come to by now and not told yet, in their order: seconds of now_s(). Does
  // not wait.
  [[nodiscard]] virtual std::vector<double> reached() = 0;

  // Returns when all marks were come to.
  virtual void finish() = 0;
};

// Where the compute thread itself computes.
class HostClock final : public StageClock {
 public:
  void mark() override { times_s_.push_back(now_s()); }

  [[nodiscard]] std::vector<double> reached() override { return std::exchange(times_s_, {}); }

  void finish() override {}

 private:
  std::vector<double> times_s_;
};

}  // namespace motley
