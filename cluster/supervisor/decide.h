// Decides what follows a launch that ended early: whether the run restarts, with which machines,
// and when. A pure function of the failed attempts.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/reach/peer_fault.h"

namespace motley {

// A launch that ended early, as input for the decision.
struct FailedAttempt {
  double at_s = 0;  // as now_s()
  ErrorCode code = ErrorCode::kInternal;
  bool has_trained = false;    // it trained a step
  bool has_saved = false;      // it saved a checkpoint, so its steps are not repeated
  bool is_of_new_run = false;  // the run has trained no step and has no checkpoint
  PeerFault fault;             // the machines that caused it
  bool is_by_request = false;  // they left after a saved step, since their workers were asked to
  // These machines did not answer afterwards: they were away, rather than failing by themselves.
  bool were_away = false;
  // Set if too few machines answered afterwards; the time of the last such query, as now_s(). The
  // network failed rather than the run.
  std::optional<double> outage_at_s;
  // Machines that did not answer although the run could not continue without them.
  std::vector<std::string> absent_machines;
};

// A machine of the cluster, and whether it answers now.
struct Member {
  std::string machine;
  std::string problem;  // "" = it answers
  // It failed by itself before and is left out, whether or not it answers.
  bool is_excluded = false;
  // It was left out before because it failed by itself, and has not been part of a saved step
  // since.
  bool is_on_probation = false;
  bool is_needed = false;  // the run cannot continue without it
};

struct RecoveryRules {
  int restarts = 3;  // run.restarts
  // The wait before the second counted restart in a row; each further one waits kLonger times as
  // long. The first restart does not wait.
  double wait_s = 2;
  double longest_wait_s = 60;
  double query_interval_s = 3;  // between two queries while too few machines answer
  double longest_outage_s = 0;  // run.patience_s: after which the run ends; 0 = never
  // If only one of three or more machines answers, how long it waits for the others before it
  // continues alone: its own network may be down.
  double continue_alone_after_s = 120;
  // How long after an outage silent machines are queried again before they are left out.
  double grace_s = 10;
  static constexpr double kLonger = 4;
  // The number of failures in a row by itself after which a machine is left out; one if it is on
  // probation.
  static constexpr int kOwnFailuresMax = 2;
  // Launches in a row without a new checkpoint, counted or not, except those that an outage ended.
  static constexpr int kLaunchesMax = 30;
  // Restarts in a row that are not counted and do not wait.
  static constexpr int kFreeRestarts = 2;
};

enum class NextAction {
  kEnd,         // the run ends with its error
  kRestart,     // restart from the newest checkpoint with the remaining members
  kQueryAgain,  // query again: too few answer, so this machine may be the disconnected one
};

struct Decision {
  NextAction next_action = NextAction::kEnd;
  int restart = 0;    // kRestart: number among counted restarts in a row; 0 = not counted
  double wait_s = 0;  // kRestart, kQueryAgain: before the action
  std::vector<std::string> without;  // kRestart: machines to leave out
  std::string excluded;  // kRestart: the one to be left out from now on, because it failed
  std::vector<std::string> silent;  // machines that do not answer
  bool is_outage = false;           // kQueryAgain: too few answer, rather than one that is late
  std::string reason;               // for the user; "" for a kEnd that its error explains
};

// Counts the failed attempts since the last one that saved a checkpoint, including it. Only
// transient failures are retried: lost processes and machines (kPeer), and internal errors
// (kInternal) of a launch that has trained. Not counted are machines that left by request, and
// failures by an outage, by the launcher's own absence, and by one machine that the others can
// continue without: after kOwnFailuresMax it is left out, and at once if the others certainly
// cannot connect to it. From the third in a row on, restarts that are not counted wait as counted
// ones do. Of machines that cannot connect to each other, one is left out. A new run whose machines
// cannot connect ends, because the user is present. REQUIRES: failed_attempts, in their order, is
// not empty; members are all machines of the cluster.
[[nodiscard]] Decision decide(double now_s,
                              std::span<const Member> members,
                              std::span<const FailedAttempt> failed_attempts,
                              const RecoveryRules& rules);

// For how long a machine is left out that failed by itself, the times-th time in a row.
[[nodiscard]] double exclusion_s(int times);

}  // namespace motley
