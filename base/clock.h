// Time: monotonic seconds for measuring, and the deadline that every wait must have.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>

namespace motley {

using SteadyClock = std::chrono::steady_clock;

// Monotonic seconds since an arbitrary start; only differences mean anything.
[[nodiscard]] inline double now_s() {
  return std::chrono::duration<double>(SteadyClock::now().time_since_epoch()).count();
}

// Seconds since 1970 UTC by the system's clock: for display, and to compare with timestamps of
// other machines and of files.
[[nodiscard]] inline double unix_time_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Processor seconds that the calling thread has used; only differences mean anything.
[[nodiscard]] double thread_cpu_s();

// Processor seconds of all threads of the process together.
[[nodiscard]] double process_cpu_s();

// A progress counter that stores the time of the last progress. Any thread may touch and read it.
class ProgressClock {
 public:
  void touch() { time_.store(SteadyClock::now(), std::memory_order_relaxed); }

  [[nodiscard]] SteadyClock::time_point time() const {
    return time_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<SteadyClock::time_point> time_{SteadyClock::now()};
};

// The time after which a wait fails. A deadline with a ProgressClock moves forward with it: such a
// wait sleeps until time() and fails only if passed() is true then.
class Deadline {
 public:
  [[nodiscard]] static Deadline after_s(double seconds) { return {seconds, nullptr}; }

  // `seconds` after the last update of the progress clock, which must outlive the deadline.
  [[nodiscard]] static Deadline after_s(double seconds, const ProgressClock& progress_clock) {
    return {seconds, &progress_clock};
  }

  [[nodiscard]] SteadyClock::time_point time() const {
    return progress_clock_ == nullptr ? time_ : std::max(time_, progress_clock_->time() + given_);
  }

  [[nodiscard]] bool passed() const { return SteadyClock::now() >= time(); }

  // Seconds left, never negative.
  [[nodiscard]] double left_s() const {
    return std::max(0.0, std::chrono::duration<double>(time() - SteadyClock::now()).count());
  }

 private:
  static constexpr double kFarthest_s = 1e8;  // three years; keeps the arithmetic from overflowing

  Deadline(double seconds, const ProgressClock* progress_clock)
      : given_(std::chrono::duration_cast<SteadyClock::duration>(
            std::chrono::duration<double>(std::min(seconds, kFarthest_s)))),
        time_(SteadyClock::now() + given_),
        progress_clock_(progress_clock) {}

  SteadyClock::duration given_;
  SteadyClock::time_point time_;
  const ProgressClock* progress_clock_;
};

// The stall timeout of a wait for other ranks: it expires after `timeout_s` without progress of any
// rank of the group. A rank that is still writing its shard of a checkpoint makes progress; ranks
// in a deadlock make none.
class StallTimeout {
 public:
  // Without a group, only the elapsed time counts.
  StallTimeout(double timeout_s) : timeout_s_(timeout_s) {}  // NOLINT: seconds are a timeout

  // The progress clock must outlive every wait.
  StallTimeout(double timeout_s, const ProgressClock& group)
      : timeout_s_(timeout_s), group_(&group) {}

  [[nodiscard]] double timeout_s() const { return timeout_s_; }

  // The same group with another timeout.
  [[nodiscard]] StallTimeout with_s(double timeout_s) const {
    StallTimeout other = *this;
    other.timeout_s_ = timeout_s;
    return other;
  }

  // The deadline of a wait that starts now.
  [[nodiscard]] Deadline deadline() const {
    return group_ == nullptr ? Deadline::after_s(timeout_s_)
                             : Deadline::after_s(timeout_s_, *group_);
  }

 private:
  double timeout_s_;
  const ProgressClock* group_ = nullptr;
};

}  // namespace motley
