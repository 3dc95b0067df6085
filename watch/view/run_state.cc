#include "watch/view/run_state.h"

#include <fmt/format.h>

#include <algorithm>

namespace motley {
namespace {

std::string step_text(const RunSigns& signs) {
  if (signs.last_step == 0) return "no step is done yet";
  return signs.steps > 0 ? fmt::format("step {} of {} is done", signs.last_step, signs.steps)
                         : fmt::format("step {} is done", signs.last_step);
}

RunState state_of_report(const ReportedEnd& report, const RunSigns& signs) {
  if (report.early) {
    return {RunPhase::kFailed, report.early->status,
            fmt::format("ended early: {}", report.early->what)};
  }
  return {RunPhase::kEnded, 0, "ended: " + step_text(signs)};
}

}  // namespace

const char* run_phase_word(RunPhase phase) {
  switch (phase) {
    case RunPhase::kTraining:
      return "training";
    case RunPhase::kEnded:
      return "ended";
    case RunPhase::kFailed:
      return "failed";
    case RunPhase::kSilent:
      return "silent";
  }
  return "silent";
}

RunState run_state_of(const RunSigns& signs) {
  if (!signs.launcher.empty()) {
    const double patience_s = std::max(kQuiet_s, kQuietSteps * signs.step_s);
    if (signs.last_step > 0 && signs.quiet_s > patience_s) {
      return {RunPhase::kSilent,
              {},
              fmt::format("{}, told nothing for {:.0f} s: {}", signs.launcher, signs.quiet_s,
                          step_text(signs))};
    }
    return {RunPhase::kTraining, {}, signs.launcher};
  }
  if (signs.report && signs.report->last_step >= signs.last_step) {
    return state_of_report(*signs.report, signs);
  }
  return {RunPhase::kSilent, {}, "its launcher is gone and left no report: " + step_text(signs)};
}

}  // namespace motley
