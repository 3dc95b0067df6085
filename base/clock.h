// Time: monotonic seconds for measuring, and deadlines that every wait must have.
#pragma once

#include <algorithm>
#include <chrono>

namespace motley {

using SteadyClock = std::chrono::steady_clock;

// Monotonic seconds since an arbitrary start; only differences mean anything.
[[nodiscard]] inline double now_s() {
  return std::chrono::duration<double>(SteadyClock::now().time_since_epoch()).count();
}

// Processor seconds that the calling thread has used; only differences mean anything.
[[nodiscard]] double thread_cpu_s();

// The same of all threads of the process together.
[[nodiscard]] double process_cpu_s();

// A point in time after which a wait gives up.
class Deadline {
 public:
  [[nodiscard]] static Deadline after_s(double seconds) {
    return Deadline(SteadyClock::now() +
                    std::chrono::duration_cast<SteadyClock::duration>(
                        std::chrono::duration<double>(std::min(seconds, kFarthest_s))));
  }

  [[nodiscard]] SteadyClock::time_point time() const { return time_; }

  [[nodiscard]] bool passed() const { return SteadyClock::now() >= time_; }

  // Seconds left, never negative.
  [[nodiscard]] double left_s() const {
    return std::max(0.0, std::chrono::duration<double>(time_ - SteadyClock::now()).count());
  }

 private:
  static constexpr double kFarthest_s = 1e8;  // three years; keeps the arithmetic from overflowing

  explicit Deadline(SteadyClock::time_point time) : time_(time) {}

  SteadyClock::time_point time_;
};

}  // namespace motley
