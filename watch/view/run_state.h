// RunState: whether a run is under way, and how it ended. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cluster/follow/run_report.h"

namespace motley {

enum class RunPhase { kTraining, kEnded, kFailed, kSilent };

// "training", "ended", "failed", "silent".
[[nodiscard]] const char* run_phase_word(RunPhase phase);

struct RunState {
  RunPhase phase = RunPhase::kTraining;
  std::optional<int> status;  // the exit status, once it is known
  std::string text;           // for people

  friend bool operator==(const RunState&, const RunState&) = default;
};

// How a session came to its end, as its report says.
struct ReportedEnd {
  std::int64_t last_step = 0;
  std::optional<EarlyEnd> early;
};

struct RunSigns {
  std::string launcher;        // that seems to be at work there; "" = none
  double quiet_s = 0;          // since the run's folder told anything
  double step_s = 0;           // that a step takes; 0 = unknown
  std::int64_t last_step = 0;  // that is done; 0 = none
  std::int64_t steps = 0;      // of the whole run; 0 = unknown
  std::optional<ReportedEnd> report;
};

// A launcher that tells nothing for as long as kQuietSteps steps take, and for kQuiet_s, is silent;
// before the first step it measures and plans. Without a launcher the report decides, unless steps
// were done since.
[[nodiscard]] RunState run_state_of(const RunSigns& signs);

inline constexpr double kQuiet_s = 60;
inline constexpr double kQuietSteps = 20;

}  // namespace motley
