#include "watch/view/run_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/result.h"

namespace motley {
namespace {

std::string step_text(const RunSigns& signs) {
  if (signs.last_step == 0) return "no step completed yet";
  return signs.steps > 0 ? fmt::format("step {} of {} completed", signs.last_step, signs.steps)
                         : fmt::format("step {} completed", signs.last_step);
}

// The signal behind an exit status; nullptr if the run was not stopped by one.
const char* who_stopped(int status) {
  if (status == static_cast<int>(ErrorCode::kInterrupted)) return "Ctrl-C";
  return status == static_cast<int>(ErrorCode::kTerminated) ? "SIGTERM" : nullptr;
}

RunState state_of_report(const ReportedEnd& report, const RunSigns& signs) {
  if (report.early) {
    if (const char* const by = who_stopped(report.early->status)) {
      return {RunPhase::kStopped, report.early->status,
              fmt::format("stopped by {}: {}", by, step_text(signs))};
    }
    return {RunPhase::kFailed, report.early->status,
            fmt::format("ended early: {}", report.early->what)};
  }
  return {RunPhase::kEnded, 0, "ended: " + step_text(signs)};
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

std::optional<PendingRestart> said_to_go_on(const std::deque<RunEvent>& events, double now_s) {
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

RunState run_state_of(const RunSigns& signs) {
  if (!signs.unreadable.empty()) return {RunPhase::kSilent, {}, signs.unreadable};
  if (signs.goes_on && (!signs.launcher.empty() || signs.goes_on->ago_s <= kGap_s)) {
    return {RunPhase::kRestarting, {}, "restarting: " + signs.goes_on->text};
  }
  if (!signs.launcher.empty()) {
    const double patience_s = std::max(kQuiet_s, kQuietSteps * signs.step_s);
    if (signs.last_step > 0 && signs.quiet_s > patience_s) {
      return {RunPhase::kSilent,
              {},
              fmt::format("{}, no report for {:.0f} s: {}", signs.launcher, signs.quiet_s,
                          step_text(signs))};
    }
    if (signs.last_step == 0 && !signs.lacks_metrics) {
      return {RunPhase::kPreparing,
              {},
              fmt::format("not started yet: {}", signs.is_planned
                                                     ? "planned, before the first step"
                                                     : "querying and measuring the machines")};
    }
    return {RunPhase::kTraining, {}, signs.launcher};
  }
  if (signs.report && signs.report->last_step >= signs.last_step) {
    return state_of_report(*signs.report, signs);
  }
  return {RunPhase::kSilent, {}, "its launcher ended without a report: " + step_text(signs)};
}

}  // namespace motley
