// What comes after a launch that ended early: whether the run goes on by itself, with whom, and
// when. A pure function of what happened.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/reach/peer_fault.h"

namespace motley {

// A launch that ended early, as far as that decides what comes next.
struct FailedAttempt {
  double at_s = 0;  // as now_s()
  ErrorCode code = ErrorCode::kInternal;
  bool has_trained = false;    // it did a step
  bool has_saved = false;      // it got further: its steps up to a checkpoint are not done again
  bool is_of_new_run = false;  // no step of the run was ever done and nothing is saved
  PeerFault fault;             // machines by which it came about
  // Asked afterwards, too few machines answered, the last time at this one, as now_s(): the network
  // failed rather than the run.
  std::optional<double> outage_at_s;
  // Machines that did not answer when the run could not go on without them.
  std::vector<std::string> lacking;
};

// A machine of the cluster, and whether it answers now.
struct Member {
  std::string machine;
  std::string trouble;  // "" = it answers
  bool is_excluded =
      false;               // it failed by itself before and is left out, whether it answers or not
  bool is_needed = false;  // the run cannot go on without it
};

struct RecoveryRules {
  int restarts = 3;  // run.restarts
  // Between the second counted setback in a row and going on; each further one waits kLonger times
  // as long. After the first nothing speaks for waiting.
  double wait_s = 2;
  double longest_wait_s = 60;
  double ask_again_s = 3;          // between two questions to machines of which too few answer
  double longest_outage_s = 1800;  // after which none of them is asked any more
  // How long the only one of three or more machines that answers waits for the others before it
  // goes on alone: it may be its own network that is away.
  double alone_after_s = 120;
  // How long after an outage those that do not answer yet are asked again before they are left out.
  double grace_s = 10;
  static constexpr double kLonger = 4;
  // So often in a row a machine may fail by itself before it is left out.
  static constexpr int kAloneMax = 2;
  // Launches in a row without a new checkpoint, counted or not.
  static constexpr int kLaunchesMax = 30;
};

enum class NextMove {
  kEnd,       // the run ends with its error
  kGoOn,      // from the newest checkpoint, with the members that are left
  kAskAgain,  // too few answer: this machine may be the one that is cut off
};

struct Decision {
  NextMove move = NextMove::kEnd;
  int restart = 0;                   // kGoOn: which counted one in a row, from 1; 0 = not counted
  double wait_s = 0;                 // kGoOn, kAskAgain: from now on
  std::vector<std::string> without;  // kGoOn: machines that are left out
  std::string excluded;              // kGoOn: which of them is left out from now on, as it failed
  std::vector<std::string> silent;   // machines that do not answer
  bool is_outage = false;            // kAskAgain: too few answer, and not only one of them late
  std::string reason;                // for people; of kEnd "" where its error says all
};

// Setbacks in a row are those after the last launch that has saved, and that one. Only what may not
// happen again is tried again: lost processes and machines (kPeer), and what should not happen
// (kInternal) to a launch that has trained. Not counted are setbacks by an outage, by this
// program's own absence, and by one machine that the others may go on without: after kAloneMax it
// is left out, and at once where others certainly cannot connect to it. Of machines that cannot
// connect to each other, one is left out. A new run whose machines cannot connect ends: a person is
// there. REQUIRES: setbacks, in their order, is not empty; members are all machines of the cluster.
[[nodiscard]] Decision decide(double now_s,
                              std::span<const Member> members,
                              std::span<const FailedAttempt> setbacks,
                              const RecoveryRules& rules);

}  // namespace motley
