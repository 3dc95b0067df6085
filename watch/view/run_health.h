// The health summary of a run: what is slow now, why, and what can be done about it. Pure.
//
// A step that takes longer than planned is explained by its times. The plan predicts for each rank
// its computing time; the rest of the step is waiting. If a machine is slow, its own computing
// exceeds the plan and all others wait. If a link is slow, no computing exceeds the plan and all
// ranks wait. Only a condition that persists for several steps and costs time is reported.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "record/step_metrics.h"

namespace motley {

enum class HealthLevel { kGood, kWatch, kBad };

struct RunHealth {
  HealthLevel level = HealthLevel::kGood;
  std::string text;    // "box is the bottleneck: +9 % over plan"
  std::string advice;  // what to do about it; "" = nothing

  friend bool operator==(const RunHealth&, const RunHealth&) = default;
};

// "good", "watch", "bad".
[[nodiscard]] const char* health_level_name(HealthLevel level);

// The plan's prediction for a rank and for its links; 0 = unknown.
struct AssessedRank {
  std::string machine;
  double predicted_compute_s = 0;
  std::int64_t memory_limit_bytes = 0;
};

struct AssessedLink {
  Rank from;
  Rank to;
  double bandwidth_bytes_per_s = 0;
};

// The interval between the ends of two steps, and whether a save was in progress.
struct StepInterval {
  double taken_s = 0;
  bool saving = false;
};

struct AssessedRun {
  double predicted_step_s = 0;      // 0 = unknown
  std::vector<AssessedRank> ranks;  // [Rank]
  std::vector<AssessedLink> links;  // of the pairs with a link
  std::vector<StepMetrics> steps;   // the newest, in order; all with the same number of ranks, or
                                    // with none
  std::vector<StepInterval> intervals;  // of more steps than `steps`, without evaluations
};

[[nodiscard]] RunHealth assess(const AssessedRun& run);

// The finding about a finished run, "local computed 74 % longer than planned"; "" if it ran as
// planned.
[[nodiscard]] std::string retrospective_of(const AssessedRun& run);

// The rank's computing time, or the step without its waits if the file lacks it; NaN if it lacks
// both.
[[nodiscard]] double computed_s(const StepMetrics& step, std::size_t rank);

inline constexpr std::size_t kWindowSteps = 6;    // the number of steps examined
inline constexpr std::size_t kPersistentMin = 5;  // of them must meet a condition
inline constexpr double kReportableShare = 0.05;  // share of the step, or of a rank's plan
inline constexpr double kBad = 0.25;              // share of the step
inline constexpr double kMemoryNear = 0.92;       // share of the limit
inline constexpr double kMemoryBad = 0.97;
inline constexpr std::size_t kSkippedBad = 3;  // of kWindowSteps

}  // namespace motley
