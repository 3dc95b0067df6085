// TransferRateLimiter: the pause after each part of a transfer during training, which limits the
// disturbance of the pipeline's frames. A pure function of its inputs.
//
// It follows delay-based background transfers (LEDBAT, RFC 6817): a queueing delay shows other
// traffic before anything else does. After each part the transfer pauses for as long as the part
// took. So it uses half of an idle link, and less of a busy one: a part that took much longer than
// the fastest recent one met other traffic, and is followed by a longer pause.
//
// A part can also be late because threads of either end waited for a processor, which is common
// where all cores compute. The bytes that the pipeline moved meanwhile distinguish the two: only
// the delay that these bytes explain is multiplied, with a factor that grows each time in a row. A
// limit ensures that the transfer always continues. The fastest time is recorded per minute and
// discarded after ten, as in the RFC, so a link that has become slower is not taken for a busy one
// forever.
#pragma once

#include <deque>

namespace motley {

class TransferRateLimiter {
 public:
  // The limit: no pause is longer, unless the part itself took as long.
  static constexpr double kLongestPause_s = 0.5;

  struct Part {
    // From sending to its answer, without the receiver's own time. >= 0.
    double took_s = 0;
    // The pipeline's frames that this rank sent and received since the previous answer, in units of
    // a part's bytes.
    double frames = 0;
  };

  // Returns the pause before the next part. REQUIRES: now_s never decreases.
  [[nodiscard]] double pause_after_s(const Part& part, double now_s);

 private:
  struct Minute {
    double begin_s = 0;
    double fastest_s = 0;
  };

  void remember(double took_s, double now_s);
  [[nodiscard]] double fastest_s() const;

  std::deque<Minute> minutes_;  // current one last; at most ten
  double multiple_ = 0;         // of the last pause; 0: the delay was not explained
};

}  // namespace motley
