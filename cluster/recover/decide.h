// What comes after a launch that ended early: whether the run goes on by itself, with whom, and
// when. A pure function of what happened.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace motley {

// A launch that ended early, as far as that decides what comes next.
struct Setback {
  double at_s = 0;  // as now_s()
  ErrorCode code = ErrorCode::kInternal;
  bool has_trained = false;  // it did a step
  bool has_saved = false;    // it got further: its steps up to a checkpoint are not done again
};

// A machine of the cluster, and whether it answers now.
struct Member {
  std::string machine;
  std::string trouble;  // "" = it answers
};

struct RecoveryRules {
  int restarts = 3;  // run.restarts
  // Between the second setback in a row and going on; each further one waits kLonger times as long.
  // After the first nothing speaks for waiting.
  double wait_s = 2;
  double longest_wait_s = 60;
  double ask_again_s = 5;      // between two questions to machines of which none answers
  double silence_max_s = 300;  // after which none of them is asked any more
  static constexpr double kLonger = 4;
};

enum class NextMove {
  kEnd,       // the run ends with its error
  kGoOn,      // from the newest checkpoint, with the members that answer
  kAskAgain,  // nobody answers yet: this machine may be the one that is cut off
};

struct Decision {
  NextMove move = NextMove::kEnd;
  int restart = 0;                   // kGoOn: which one in a row, from 1
  double wait_s = 0;                 // kGoOn, kAskAgain: from now on
  std::vector<std::string> without;  // kGoOn: machines that are left out
  std::string reason;                // for people; of kEnd "" where its error says all
};

// Setbacks in a row are those after the last launch that has saved, and that one. Only what may not
// happen again is tried again: lost processes and machines (kPeer), and what should not happen
// (kInternal) to a launch that has trained.
// REQUIRES: setbacks, in their order, is not empty.
[[nodiscard]] Decision decide(double now_s,
                              std::span<const Member> members,
                              std::span<const Setback> setbacks,
                              const RecoveryRules& rules);

}  // namespace motley
