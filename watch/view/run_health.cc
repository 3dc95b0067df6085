#include "watch/view/run_health.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/median.h"
#include "plan/quantity_text.h"
#include "watch/view/explain_slow_steps.h"
#include "watch/view/run_finding.h"

namespace motley {
namespace {

std::optional<RunFinding> assess_skipped(const AssessedRun& run) {
  const Steps steps = recent_window(run);
  const auto skipped = static_cast<std::size_t>(
      std::ranges::count_if(steps, [](const StepMetrics& step) { return step.outcome.skipped; }));
  if (skipped < kSkippedBad) return {};
  const std::string text = fmt::format(
      "{} of the last {} steps were skipped: the gradient is not finite", skipped, steps.size());
  return RunFinding{{HealthLevel::kBad, text,
                     "stop it and continue from an earlier checkpoint with a smaller train.lr"},
                    text};
}

// The rank nearest to its memory limit.
std::optional<RunFinding> assess_memory(const AssessedRun& run) {
  const StepMetrics& last = run.steps.back();
  double nearest = 0;
  std::size_t at = 0;
  for (std::size_t r = 0; r < std::min(last.ranks.size(), run.ranks.size()); ++r) {
    const auto limit = static_cast<double>(run.ranks[r].memory_limit_bytes);
    if (limit <= 0) continue;
    const double share = static_cast<double>(last.ranks[r].memory_bytes) / limit;
    if (share <= nearest) continue;
    nearest = share;
    at = r;
  }
  if (nearest < kMemoryNear) return {};
  const std::string& machine = run.ranks[at].machine;
  const std::string used =
      fmt::format("{} of {}", bytes_text(static_cast<double>(last.ranks[at].memory_bytes)),
                  bytes_text(static_cast<double>(run.ranks[at].memory_limit_bytes)));
  return RunFinding{{nearest >= kMemoryBad ? HealthLevel::kBad : HealthLevel::kWatch,
                     fmt::format("{} is near its memory limit: {}", machine, used),
                     "end other programs there, or plan with a smaller train.micro_batch or "
                     "parallel.recompute = \"all\""},
                    fmt::format("{} was near its memory limit: {}", machine, used)};
}

// The cost of saving: how much longer the steps during saves take than others.
std::optional<CostedFinding> assess_saves(const AssessedRun& run) {
  constexpr std::size_t kOthers = 5;
  std::vector<double> others_s;
  std::size_t saving = 0;
  double all_s = 0;
  for (const StepInterval& interval : run.intervals) {
    all_s += interval.taken_s;
    if (interval.saving) {
      ++saving;
    } else {
      others_s.push_back(interval.taken_s);
    }
  }
  if (saving < 2 || others_s.size() < kOthers) return {};
  const double usual_s = median(others_s);
  double lost_s = 0;
  for (const StepInterval& interval : run.intervals) {
    if (interval.saving) lost_s += std::max(0.0, interval.taken_s - usual_s);
  }
  const double share = lost_s / all_s;
  if (!(share >= kReportableShare)) return {};
  return CostedFinding{
      lost_s / static_cast<double>(run.intervals.size()),
      {{level_of(share), fmt::format("saving takes {:.0f} % of the time", share * 100),
        "raise checkpoint.every, or save to a faster disk"},
       fmt::format("saving took {:.0f} % of the time", share * 100)}};
}

RunHealth in_order(const AssessedRun& run) {
  const Steps steps = recent_window(run);
  const double measured_s = median_step_s(run.steps);  // as in the displayed figures
  if (!std::isfinite(measured_s)) return {HealthLevel::kGood, "the run reports no times", ""};
  const std::string text = seconds_text(measured_s) + " a step";
  if (run.predicted_step_s <= 0) return {HealthLevel::kGood, text + "; no prediction", ""};
  const bool is_faster = persists(steps, [&](const StepMetrics& step) {
    return step.step_s < run.predicted_step_s * (1 - kReportableShare);
  });
  if (!is_faster) return {HealthLevel::kGood, "as planned: " + text, ""};
  return {HealthLevel::kGood,
          fmt::format("faster than planned: {}, {}", text,
                      percent_over(run.predicted_step_s, measured_s)),
          ""};
}

// The most important finding; nothing if the run is in order.
std::optional<RunFinding> worst_of(const AssessedRun& run) {
  if (auto skipped = assess_skipped(run)) return skipped;
  auto memory = assess_memory(run);
  if (memory && memory->health.level == HealthLevel::kBad) return memory;
  auto slow_steps = explain_slow_steps(run);
  auto saves = assess_saves(run);
  if (slow_steps && (!saves || slow_steps->lost_s >= saves->lost_s))
    return std::move(slow_steps->finding);
  if (saves) return std::move(saves->finding);
  return memory;
}

}  // namespace

const char* health_level_name(HealthLevel level) {
  switch (level) {
    case HealthLevel::kGood:
      return "good";
    case HealthLevel::kWatch:
      return "watch";
    case HealthLevel::kBad:
      return "bad";
  }
  return "bad";
}

double computed_s(const StepMetrics& step, std::size_t rank) {
  if (rank < step.ranks.size()) return step.ranks[rank].times.compute_s;
  return rank < step.wait_s.size() ? step.step_s - step.wait_s[rank] : std::nan("");
}

RunHealth assess(const AssessedRun& run) {
  if (run.steps.size() < kWindowSteps) {
    return {HealthLevel::kGood, "too few steps for a summary", ""};
  }
  if (auto found = worst_of(run)) return std::move(found->health);
  return in_order(run);
}

std::string retrospective_of(const AssessedRun& run) {
  if (run.steps.size() < kWindowSteps) return "";
  const auto found = worst_of(run);
  return found ? found->retrospective : "";
}

}  // namespace motley
