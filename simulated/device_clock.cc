#include "simulated/device_clock.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.h"

namespace motley {
namespace {

class SystemWaitTime final : public WaitTime {
 public:
  double now_s() override { return motley::now_s(); }

  double thread_cpu_s() override { return motley::thread_cpu_s(); }

  void sleep_until(double at_s) override {
    std::this_thread::sleep_until(SteadyClock::time_point(
        std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(at_s))));
  }
};

}  // namespace

std::unique_ptr<WaitTime> system_wait_time() {
  return std::make_unique<SystemWaitTime>();
}

void DeviceClock::begin() {
  const double now_s = time_->now_s();
  const double waited_s = (now_s - ended_s_) - (time_->thread_cpu_s() - ended_cpu_s_);
  target_s_ = now_s - std::max(0.0, late_s_ - std::max(0.0, waited_s));
}

void DeviceClock::pass(double seconds, const IdleTask& idle_task) {
  target_s_ += seconds;
  while (time_->now_s() < target_s_ && idle_task()) continue;
  if (time_->now_s() < target_s_) time_->sleep_until(target_s_);
  ended_s_ = time_->now_s();
  ended_cpu_s_ = time_->thread_cpu_s();
  late_s_ = std::max(0.0, ended_s_ - target_s_);
}

}  // namespace motley
