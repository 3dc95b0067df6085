// ComputeThrottle: limits the computing of a thread to a share of the processor, so that one
// machine can emulate slower ones (docs/decisions/0059-emulated-speed-by-pauses.md).
//
// The thread sleeps after each piece of its work until the work would be complete at that share.
// Used by the computing thread alone.
#pragma once

#include <functional>

namespace motley {

// What a throttle reads and does; the system's by default.
struct ThrottleClocks {
  std::function<double()> cpu_s;        // processor seconds of the calling thread
  std::function<double()> now_s;        // monotonic seconds
  std::function<void(double)> sleep_s;  // may last longer

  static ThrottleClocks of_system();
};

class ComputeThrottle {
 public:
  // Of work that `threads` threads share: together they get `cores` cores, e.g. 0.5. No limit if
  // `cores` is 0 or at least `threads`.
  ComputeThrottle(double cores, int threads, ThrottleClocks clocks = ThrottleClocks::of_system());

  // Work begins here.
  void begin();
  // The work since the last call of begin() or end() is complete, of whose time `waited_s` was
  // waiting: sleeps for the rest of its time.
  void end(double waited_s = 0);

 private:
  double slowdown_;  // time of work / its time at full speed
  ThrottleClocks clocks_;
  double cpu_s_ = 0;
  double time_s_ = 0;
  double due_s_ = 0;  // sleep not taken yet; negative after a sleep that lasted too long
};

}  // namespace motley
