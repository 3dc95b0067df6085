// PaceKeeper: how long a transfer beside training leaves the link alone after each part, so that
// the pipeline's frames hardly feel it. A pure function of what it is told.
//
// The idea is that of delay-based background transfers (LEDBAT, RFC 6817): who waits in a queue is
// late before anything else shows that others use the link. A part that took much longer than the
// fastest one of late has met others, and the next one follows after as long again; one that was
// fast has met nobody, and the same holds. So an idle link is used for half of the time, and one
// on which each part waits for a frame for the small share that a part is of such a wait.
//
// A part can also be late because the threads of either end waited for a processor, which is the
// rule where all cores compute. What the pipeline has moved meanwhile tells the two apart: for as
// much of the lateness as those bytes explain the transfer stays away, and for longer each time in
// a row, up to a floor, so that it leaves no link for good. The fastest is kept by the minute and
// forgotten after ten, as the RFC does it: a link that has become slower is not busy for ever.
#pragma once

#include <deque>

namespace motley {

class PaceKeeper {
 public:
  // The floor: no pause is longer, unless the part itself took as long.
  static constexpr double kLongestPause_s = 0.5;

  struct Part {
    // From its sending to its answer, without the time that the receiver had it. >= 0.
    double took_s = 0;
    // What this rank has sent and received of the pipeline's frames since the answer before, in
    // bytes of such a part.
    double frames = 0;
  };

  // Returns the pause before the next part. REQUIRES: now_s never falls.
  [[nodiscard]] double pause_after_s(const Part& part, double now_s);

 private:
  struct Minute {
    double begin_s = 0;
    double fastest_s = 0;
  };

  void remember(double took_s, double now_s);
  [[nodiscard]] double fastest_s() const;

  std::deque<Minute> minutes_;  // the present one last; at most ten
  double multiple_ = 0;         // of its pause, of what explained its lateness; 0: nothing did
};

}  // namespace motley
