// The verdict on a run: who is slow, now, and why, and what somebody can do about it. Pure.
//
// A step that takes longer than planned is explained by where its time went. What the plan gives a
// rank is its computing, and waiting for the rest of the step. Where a machine is slow, its own
// computing is over its plan and all others wait; where a link is slow, no computing is over its
// plan and all wait. Only what lasts for several steps counts, and only what costs time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "cluster/follow/metrics.h"

namespace motley {

enum class VerdictLevel { kGood, kWatch, kBad };

struct RunVerdict {
  VerdictLevel level = VerdictLevel::kGood;
  std::string text;    // "box is the bottleneck: +9 % over plan"
  std::string advice;  // what to do about it; "" = nothing needs to be done

  friend bool operator==(const RunVerdict&, const RunVerdict&) = default;
};

// "good", "watch", "bad".
[[nodiscard]] const char* verdict_word(VerdictLevel level);

// What the plan says of a rank, and of what it sends another; 0 = unknown.
struct JudgedRank {
  std::string machine;
  double predicted_compute_s = 0;
  std::int64_t memory_limit_bytes = 0;
};

struct JudgedLink {
  Rank from;
  Rank to;
  double bandwidth_bytes_per_s = 0;
};

// The time between the ends of two steps, and whether the run saved meanwhile.
struct StepPace {
  double taken_s = 0;
  bool saving = false;
};

struct JudgedRun {
  double predicted_step_s = 0;     // 0 = unknown
  std::vector<JudgedRank> ranks;   // [Rank]
  std::vector<JudgedLink> links;   // of the pairs that have one
  std::vector<StepMetrics> steps;  // the newest, in order; of each as many ranks, or none
  std::vector<StepPace> paces;     // of more of them, without evaluations
};

[[nodiscard]] RunVerdict judge(const JudgedRun& run);

// What can still be learnt of a run that has ended, where nobody can help it any more: "local
// computed 74 % longer than planned"; "" where it went as it should.
[[nodiscard]] std::string lesson_of(const JudgedRun& run);

// What a rank computed, or the step without its waiting where the file does not tell; not a number
// where it tells neither.
[[nodiscard]] double computed_s(const StepMetrics& step, std::size_t rank);

inline constexpr std::size_t kLastingSteps = 6;   // that are looked at, and
inline constexpr std::size_t kLastingOfThem = 5;  // in which it must be so
inline constexpr double kWorthSaying = 0.05;      // of the step, or of a rank's plan
inline constexpr double kBad = 0.25;              // of the step
inline constexpr double kMemoryNear = 0.92;       // of the limit
inline constexpr double kMemoryBad = 0.97;
inline constexpr std::size_t kSkippedBad = 3;  // of kLastingSteps

}  // namespace motley
