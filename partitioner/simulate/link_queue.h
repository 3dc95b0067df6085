// LinkQueue: one direction of a link, which carries one message at a time. Values of micro-batches
// are first come, first served, as if there were no other traffic. Bulk messages, those of
// all-reduces over replicas, use the remaining time, first come, first served among themselves;
// each value preempts them.
//
// The bulk clock is the time that the link has had for bulk so far: it stops while values pass. The
// begin and end of a bulk message are readings of that clock that are known on arrival. The time at
// which it reaches them depends on the values that arrive until then.
#pragma once

#include <algorithm>

namespace motley {

// REQUIRES for all functions: now_s does not decrease from call to call.
class LinkQueue {
 public:
  // A value arrives. Returns when it begins.
  double take(double duration_s, double now_s) {
    const double start_s = std::max(now_s, values_end_s_);
    values_end_s_ = start_s + duration_s;
    values_s_ += duration_s;
    return start_s;
  }

  [[nodiscard]] double values_end_s() const { return values_end_s_; }

  // Readings of the bulk clock.
  struct Turn {
    double begin = 0;
    double end = 0;
  };

  // A bulk message arrives.
  Turn queue(double duration_s, double now_s) {
    const double begin = std::max(clock(now_s), bulk_end_);
    bulk_end_ = begin + duration_s;
    return {begin, bulk_end_};
  }

  // The time when it begins, unless a value arrives before. REQUIRES: it has not begun.
  [[nodiscard]] double begin_s(const Turn& turn) const { return turn.begin + values_s_; }

  // The time when it has passed, unless a value arrives before; `now_s` if it has passed already.
  [[nodiscard]] double end_s(const Turn& turn, double now_s) const {
    // A value that arrives at its end does not delay it, regardless of rounding.
    constexpr double kRounded = 1e-12;
    const double clock_s = clock(now_s);
    return turn.end <= clock_s + kRounded * clock_s ? now_s : turn.end + values_s_;
  }

 private:
  // Values that have arrived pass without a gap, so the clock continues at `values_end_s_`.
  [[nodiscard]] double clock(double now_s) const {
    return std::max(now_s, values_end_s_) - values_s_;
  }

  double values_end_s_ = 0;
  double values_s_ = 0;  // total duration of all values
  double bulk_end_ = 0;  // reading of the bulk clock
};

}  // namespace motley
