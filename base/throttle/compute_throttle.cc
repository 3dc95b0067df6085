#include "base/throttle/compute_throttle.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/clock.h"

namespace motley {
namespace {

// The system's sleeps are too long by a tenth of this, so shorter ones are taken together.
constexpr double kSleepMin_s = 1e-3;

}  // namespace

ThrottleClocks ThrottleClocks::of_system() {
  return {thread_cpu_s, motley::now_s, [](double seconds) {
            std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
          }};
}

ComputeThrottle::ComputeThrottle(double cores, int threads, ThrottleClocks clocks)
    : slowdown_(cores > 0 ? std::max(1.0, threads / cores) : 1), clocks_(std::move(clocks)) {}

void ComputeThrottle::begin() {
  if (slowdown_ == 1) return;
  cpu_s_ = clocks_.cpu_s();
  time_s_ = clocks_.now_s();
}

void ComputeThrottle::end(double waited_s) {
  if (slowdown_ == 1) return;
  const double passed_s = std::max(0.0, clocks_.now_s() - time_s_ - waited_s);
  // A wait may use processor time too, which is no work.
  const double worked_s = std::min(clocks_.cpu_s() - cpu_s_, passed_s);
  // Time lost to other processes is not made up for by faster work later.
  due_s_ = std::max(due_s_ + worked_s * slowdown_ - passed_s, -kSleepMin_s);
  if (due_s_ >= kSleepMin_s) {
    const double start_s = clocks_.now_s();
    clocks_.sleep_s(due_s_);
    due_s_ -= clocks_.now_s() - start_s;
  }
  begin();
}

}  // namespace motley
