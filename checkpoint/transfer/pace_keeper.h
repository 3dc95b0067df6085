// PaceKeeper: how long a transfer beside training leaves the link alone after each part, so that
// the pipeline's frames hardly feel it. A pure function of the times that it is told.
//
// The idea is that of delay-based background transfers (LEDBAT, RFC 6817): who waits in a queue is
// late before anything else shows that others use the link. A part that took much longer than the
// fastest one of late met others, and the transfer stays away, for longer each time in a row; one
// that was fast met nobody, and the next follows after as long again. So an idle link is used for
// half of the time, a busy one hardly, and no link never. The fastest is kept by the minute and
// forgotten after ten, as the RFC does it: a link that has become slower is not busy for ever.
#pragma once

#include <deque>

namespace motley {

class PaceKeeper {
 public:
  // The floor: no pause is longer, unless the part itself took as long.
  static constexpr double kLongestPause_s = 0.5;

  // A part has just been answered, took_s after it was sent, without the time that the receiver
  // had it. Returns the pause before the next one. REQUIRES: now_s never falls; took_s >= 0.
  [[nodiscard]] double pause_after_s(double took_s, double now_s);

 private:
  struct Minute {
    double begin_s = 0;
    double fastest_s = 0;
  };

  void remember(double took_s, double now_s);
  [[nodiscard]] double fastest_s() const;

  std::deque<Minute> minutes_;  // the present one last; at most ten
  double multiple_ = 0;         // of its time that the last part's pause was; 0: the link was idle
};

}  // namespace motley
