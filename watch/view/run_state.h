// RunState: whether a run is under way, and how it ended. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "record/run_end.h"
#include "record/run_event.h"

namespace motley {

enum class RunPhase { kPreparing, kTraining, kRestarting, kEnded, kStopped, kFailed, kSilent };

// "preparing", "training", "restarting", "ended", "stopped", "failed", "silent".
[[nodiscard]] const char* run_phase_word(RunPhase phase);

struct RunState {
  RunPhase phase = RunPhase::kTraining;
  std::optional<int> status;  // the exit status; empty while unknown
  std::string text;           // for people

  friend bool operator==(const RunState&, const RunState&) = default;
};

// A failed launch that is to be restarted automatically, and has not been restarted yet.
struct PendingRestart {
  std::string text;  // the event's text
  double ago_s = 0;
};

// From a run's events, in order. Nothing if the newest event about launches is not a loss.
[[nodiscard]] std::optional<PendingRestart> pending_restart_of(const std::deque<RunEvent>& events,
                                                               double now_s);

struct RunObservations {
  std::string unreadable;      // the reason why the run's folder cannot be read; "" = readable
  std::string launcher;        // the active launcher; "" = none
  double quiet_s = 0;          // since the last write to the run's folder
  double step_s = 0;           // duration of a step; 0 = unknown
  std::int64_t last_step = 0;  // finished; 0 = none
  std::int64_t steps = 0;      // of the whole run; 0 = unknown
  bool is_planned = false;
  bool lacks_metrics = false;          // steps were done, but metrics.jsonl is missing
  std::optional<RunEnd> reported_end;  // of the last session; nothing: it has no report
  std::optional<PendingRestart> pending_restart;
};

// Between two launches a restarting run has no launcher, for at most kGap_s. A launcher is silent
// if it writes nothing for kQuietSteps steps and for kQuiet_s; before the first step it profiles
// and plans, and the run is being prepared. Without a launcher the report decides, unless steps
// were done since. A run that was ended early by Ctrl-C or SIGTERM is stopped, not failed.
[[nodiscard]] RunState run_state_of(const RunObservations& observations);

inline constexpr double kGap_s = 30;
inline constexpr double kQuiet_s = 60;
inline constexpr double kQuietSteps = 20;

}  // namespace motley
