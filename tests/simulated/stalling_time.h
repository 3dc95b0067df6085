// StallingTime: a simulated clock that only sleeping advances, without real waiting.
#pragma once

#include "simulated/device_clock.h"

namespace motley {

class StallingTime final : public WaitTime {
 public:
  // `slept_s` accumulates the time slept, and must outlive the clock.
  explicit StallingTime(double& slept_s) : slept_s_(slept_s) {}

  double now_s() override { return slept_s_; }

  double thread_cpu_s() override { return slept_s_; }

  void sleep_until(double at_s) override { slept_s_ = at_s; }

 private:
  double& slept_s_;
};

}  // namespace motley
