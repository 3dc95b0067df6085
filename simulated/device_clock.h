// DeviceClock: waits as long as a device would compute.
//
// A computation begins when its caller requests it and ends a given time later. The thread sleeps
// until then, on the monotonic clock, so many devices fit on one processor. A sleep ends late, by
// about 50 us of timer slack and by the processor's load. The next computation begins earlier by
// the lateness of the previous one, unless the thread waited for something else in between, for
// example a message; then that wait decided when it began. So lateness does not accumulate along a
// chain of computations: the end of each is late only by its own sleep.
#pragma once

#include <functional>
#include <memory>

namespace motley {

// The clock of a simulated device; tests replace it.
class WaitTime {
 public:
  virtual ~WaitTime() = default;
  virtual double now_s() = 0;         // monotonic
  virtual double thread_cpu_s() = 0;  // processor time of the calling thread
  virtual void sleep_until(double at_s) = 0;
};

[[nodiscard]] std::unique_ptr<WaitTime> system_wait_time();

// Used by one thread; its processor time shows whether it waited.
class DeviceClock {
 public:
  explicit DeviceClock(std::unique_ptr<WaitTime> time) : time_(std::move(time)) {}

  // Starts a computation now, or earlier by the lateness of the previous one.
  void begin();

  // Work done while time passes; returns false when nothing is left to do. Each call should be
  // short.
  using IdleTask = std::function<bool()>;

  // Lets the computation run for that long, then returns. Successive parts of one computation
  // follow without a gap. REQUIRES: begin().
  void pass(double seconds, const IdleTask& idle_task);

 private:
  std::unique_ptr<WaitTime> time_;
  double target_s_ = 0;     // end of the current part
  double late_s_ = 0;       // how late the last part ended
  double ended_s_ = 0;      // when the last part ended
  double ended_cpu_s_ = 0;  // the thread's processor time then
};

}  // namespace motley
