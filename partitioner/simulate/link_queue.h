// LinkQueue: one direction of a link, which carries one message at a time. Values of micro-batches
// are first come, first served, as if nothing else were there. Bulk - the sums over replicas - has
// the time that they leave, first come, first served among itself, and lets each value interrupt
// it.
//
// The bulk clock is the time that the link had left for bulk so far: it stands still while values
// pass. What comes as bulk begins and ends at readings of that clock that are known at once; at
// what time it shows them depends on the values that come until then.
#pragma once

#include <algorithm>

namespace motley {

// REQUIRES of all: now_s does not go back from call to call.
class LinkQueue {
 public:
  // A value comes. Returns when it begins.
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

  // Bulk comes.
  Turn queue(double duration_s, double now_s) {
    const double begin = std::max(clock(now_s), bulk_end_);
    bulk_end_ = begin + duration_s;
    return {begin, bulk_end_};
  }

  // When it begins, unless a value comes before. REQUIRES: it has not begun.
  [[nodiscard]] double begin_s(const Turn& turn) const { return turn.begin + values_s_; }

  // When it is past, unless a value comes before; `now_s` where it is past already.
  [[nodiscard]] double end_s(const Turn& turn, double now_s) const {
    // A value that comes as it ends does not hold it up, whatever was rounded.
    constexpr double kRounded = 1e-12;
    const double clock_s = clock(now_s);
    return turn.end <= clock_s + kRounded * clock_s ? now_s : turn.end + values_s_;
  }

 private:
  // Values that have come pass without a gap, so that from `values_end_s_` on it goes again.
  [[nodiscard]] double clock(double now_s) const {
    return std::max(now_s, values_end_s_) - values_s_;
  }

  double values_end_s_ = 0;
  double values_s_ = 0;  // that all of them take
  double bulk_end_ = 0;  // of the bulk clock
};

}  // namespace motley
