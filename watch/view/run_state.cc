#include "watch/view/run_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/result.h"

namespace motley {
namespace {

std::string step_text(const RunObservations& observations) {
  if (observations.last_step == 0) return "no step completed yet";
  return observations.steps > 0
             ? fmt::format("step {} of {} completed", observations.last_step, observations.steps)
             : fmt::format("step {} completed", observations.last_step);
}

// The signal behind an exit status; nullptr if the run was not stopped by one.
const char* stopped_by(int status) {
  if (status == static_cast<int>(ErrorCode::kInterrupted)) return "Ctrl-C";
  return status == static_cast<int>(ErrorCode::kTerminated) ? "SIGTERM" : nullptr;
}

RunState state_after(const RunEnd& end, const RunObservations& observations) {
  if (end.has_completed()) {
    const std::string early =
        end.stopped_early.empty() ? "" : "; stopped early: " + end.stopped_early;
    return {RunPhase::kEnded, 0, "ended: " + step_text(observations) + early};
  }
  if (const char* const by = stopped_by(end.status)) {
    return {RunPhase::kStopped, end.status,
            fmt::format("stopped by {}: {}", by, step_text(observations))};
  }
  return {RunPhase::kFailed, end.status, fmt::format("ended early: {}", end.what)};
}

}  // namespace

const char* run_phase_word(RunPhase phase) {
  switch (phase) {
    case RunPhase::kPreparing:
      return "preparing";
    case RunPhase::kTraining:
      return "training";
    case RunPhase::kRestarting:
      return "restarting";
    case RunPhase::kEnded:
      return "ended";
    case RunPhase::kStopped:
      return "stopped";
    case RunPhase::kFailed:
      return "failed";
    case RunPhase::kSilent:
      return "silent";
  }
  return "silent";
}

std::optional<PendingRestart> pending_restart_of(const std::deque<RunEvent>& events, double now_s) {
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    switch (event->kind) {
      case RunEventKind::kLost:
        return PendingRestart{event->text, std::abs(now_s - event->time_s)};
      case RunEventKind::kStarted:
      case RunEventKind::kResumed:
      case RunEventKind::kRestarted:
      case RunEventKind::kEnded:
        return {};
      case RunEventKind::kCheckpoint:
      case RunEventKind::kCheckpointFailed:
      case RunEventKind::kMetricsFailed:
      case RunEventKind::kReplanned:
      case RunEventKind::kWarning:
        break;
    }
  }
  return {};
}

RunState run_state_of(const RunObservations& observations) {
  if (!observations.unreadable.empty()) return {RunPhase::kSilent, {}, observations.unreadable};
  if (observations.pending_restart &&
      (!observations.launcher.empty() || observations.pending_restart->ago_s <= kGap_s)) {
    return {RunPhase::kRestarting, {}, "restarting: " + observations.pending_restart->text};
  }
  if (!observations.launcher.empty()) {
    const double stall_timeout_s = std::max(kQuiet_s, kQuietSteps * observations.step_s);
    if (observations.last_step > 0 && observations.quiet_s > stall_timeout_s) {
      return {RunPhase::kSilent,
              {},
              fmt::format("{}, no report for {:.0f} s: {}", observations.launcher,
                          observations.quiet_s, step_text(observations))};
    }
    if (observations.last_step == 0 && !observations.lacks_metrics) {
      return {RunPhase::kPreparing,
              {},
              fmt::format("not started yet: {}", observations.is_planned
                                                     ? "planned, before the first step"
                                                     : "querying and measuring the machines")};
    }
    return {RunPhase::kTraining, {}, observations.launcher};
  }
  if (observations.reported_end && observations.reported_end->last_step >= observations.last_step) {
    return state_after(*observations.reported_end, observations);
  }
  return {RunPhase::kSilent, {}, "its launcher ended without a report: " + step_text(observations)};
}

}  // namespace motley
