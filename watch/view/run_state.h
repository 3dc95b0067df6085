// RunState: whether a run is under way, and how it ended. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "cluster/follow/run_event.h"
#include "cluster/follow/run_report.h"

namespace motley {

enum class RunPhase { kPreparing, kTraining, kRestarting, kEnded, kStopped, kFailed, kSilent };

// "preparing", "training", "restarting", "ended", "stopped", "failed", "silent".
[[nodiscard]] const char* run_phase_word(RunPhase phase);

struct RunState {
  RunPhase phase = RunPhase::kTraining;
  std::optional<int> status;  // the exit status, once it is known
  std::string text;           // for people

  friend bool operator==(const RunState&, const RunState&) = default;
};

// A launch that failed, whose launcher has said that the run goes on, and which nothing followed.
struct PendingRestart {
  std::string text;  // what it said
  double ago_s = 0;
};

// Of a run's events, in order. Nothing where the newest of those about launches says something
// else.
[[nodiscard]] std::optional<PendingRestart> said_to_go_on(const std::deque<RunEvent>& events,
                                                          double now_s);

// How a session came to its end, as its report says.
struct ReportedEnd {
  std::int64_t last_step = 0;
  std::optional<EarlyEnd> early;
};

struct RunSigns {
  std::string unreadable;      // why the run's folder cannot be read; "" = it can be
  std::string launcher;        // that seems to be at work there; "" = none
  double quiet_s = 0;          // since the run's folder told anything
  double step_s = 0;           // that a step takes; 0 = unknown
  std::int64_t last_step = 0;  // that is done; 0 = none
  std::int64_t steps = 0;      // of the whole run; 0 = unknown
  bool is_planned = false;
  bool lacks_metrics = false;  // steps were done, and their file is gone: which ones is not known
  std::optional<ReportedEnd> report;
  std::optional<PendingRestart> goes_on;
};

// A run that goes on by itself has no launcher for a moment, between two launches, for kGap_s at
// the most. A launcher that tells nothing for as long as kQuietSteps steps take, and for kQuiet_s,
// is silent; before the first step it measures and plans: the run is being prepared. Without a
// launcher the report decides, unless steps were done since. Who was told to end early, by Ctrl-C
// or SIGTERM, has stopped and not failed.
[[nodiscard]] RunState run_state_of(const RunSigns& signs);

inline constexpr double kGap_s = 30;
inline constexpr double kQuiet_s = 60;
inline constexpr double kQuietSteps = 20;

}  // namespace motley
