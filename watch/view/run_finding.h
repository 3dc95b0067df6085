// Findings about a run, each from one aspect of it; run_health.cc selects among them. Pure.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/median.h"
#include "watch/view/run_health.h"

namespace motley {

// The verdict for a live run, and the corresponding statement about a finished one.
struct RunFinding {
  RunHealth health;
  std::string retrospective;
};

// A finding with the time that its cause costs per step.
struct CostedFinding {
  double lost_s = 0;
  RunFinding finding;
};

using Steps = std::span<const StepMetrics>;

// The newest steps, at most kWindowSteps, in which a condition must persist.
[[nodiscard]] inline Steps recent_window(const AssessedRun& run) {
  const Steps all = run.steps;
  return all.last(std::min(all.size(), kWindowSteps));
}

// NaN if no step has a finite value.
template <class Of>
[[nodiscard]] double median_of(Steps steps, const Of& of) {
  std::vector<double> values;
  for (const StepMetrics& step : steps) {
    if (const double value = of(step); std::isfinite(value)) values.push_back(value);
  }
  return values.empty() ? std::nan("") : median(std::move(values));
}

template <class Is>
[[nodiscard]] bool persists(Steps steps, const Is& is) {
  return static_cast<std::size_t>(std::ranges::count_if(steps, is)) >= kPersistentMin;
}

[[nodiscard]] inline double median_step_s(Steps steps) {
  return median_of(steps, [](const StepMetrics& step) { return step.step_s; });
}

// The level for a loss of this share of a step.
[[nodiscard]] inline HealthLevel level_of(double share_of_step) {
  return share_of_step >= kBad ? HealthLevel::kBad : HealthLevel::kWatch;
}

// "+9 %".
[[nodiscard]] inline std::string percent_over(double base, double value) {
  return fmt::format("{:+.0f} %", (value / base - 1) * 100);
}

}  // namespace motley
