// DeviceClock: waits as long as a device would compute.
//
// A computation begins when its caller asks for it and ends a given time later: the thread sleeps
// until then, on the monotonic clock, so that many devices fit on one processor. A sleep ends late,
// by some 50 us of timer slack and by as much as the processor is busy. What one computation was
// late the next one begins earlier, unless the thread has waited for something else in between, as
// for a message: then that, and not the lateness, decided when it began. So lateness does not add
// up along a chain of computations; the end of each is late by what its own sleep was.
#pragma once

#include <functional>
#include <memory>

namespace motley {

// Time as a device that only waits sees it; tests have a clock of their own.
class WaitTime {
 public:
  virtual ~WaitTime() = default;
  virtual double now_s() = 0;         // monotonic
  virtual double thread_cpu_s() = 0;  // that the calling thread has computed
  virtual void sleep_until(double at_s) = 0;
};

[[nodiscard]] std::unique_ptr<WaitTime> system_wait_time();

// Used by one thread, whose processor time tells it whether the thread waited.
class DeviceClock {
 public:
  explicit DeviceClock(std::unique_ptr<WaitTime> time) : time_(std::move(time)) {}

  // A computation begins now, or as much earlier as the one before was late.
  void begin();

  // What is done while time passes; false: nothing is left to do. Each call should be short.
  using Chore = std::function<bool()>;

  // Lets it go on for that long, then returns. Several parts of one computation follow each other
  // without a gap. REQUIRES: begin().
  void pass(double seconds, const Chore& chore);

 private:
  std::unique_ptr<WaitTime> time_;
  double target_s_ = 0;     // when the part under way is over
  double late_s_ = 0;       // by how much the last one ended after its target
  double ended_s_ = 0;      // when it did
  double ended_cpu_s_ = 0;  // the thread's processor time then
};

}  // namespace motley
