// StepMetrics: a step of a run, from the reports of all ranks; a line of metrics.jsonl.
// Format: docs/formats/metrics.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/json_fwd.h"
#include "base/result.h"
#include "plan/step_times.h"
#include "record/step_outcome.h"

namespace motley {

struct StepMetrics {
  std::int64_t step = 0;
  StepOutcome outcome;
  double step_s = 0;  // of the slowest rank
  double predicted_step_s = 0;
  bool without_targets = false;  // the loss counted none: the step changed nothing
  bool is_computed = true;       // otherwise loss and grad_norm are meaningless
  std::uint64_t wire_bytes = 0;  // sent by all ranks
  double bubble = 0;             // fraction of the ranks' time not spent computing

  // Fractions of the ranks' time that was not spent in layers. `imbalance` is the part of the
  // bubble that would remain with infinitely fast links and no pipeline fill; `links_and_filling`
  // is the rest of the bubble. Codec and optimizer time is not part of the bubble.
  struct Losses {
    double imbalance = 0;
    double links_and_filling = 0;
    double codec = 0;
    double optimizer = 0;
  };

  Losses losses;
  std::vector<double> wait_s;  // [Rank]

  // The part of one rank.
  struct RankStep {
    StepTimes times;
    std::int64_t memory_bytes = 0;  // resident after the step; 0 = unknown
  };

  // The bytes that one rank sent to another.
  struct Sent {
    Rank from;
    Rank to;
    std::uint64_t bytes = 0;
  };

  double time_s = 0;            // since 1970 UTC, at the step's completion; 0 = unknown
  std::vector<RankStep> ranks;  // [Rank]; empty in files of earlier versions
  std::vector<Sent> links;      // pairs with traffic
  std::optional<double> eval_loss;
  bool eval_without_targets = false;  // there was an evaluation, whose loss counted no target
  std::optional<double> eval_perplexity = {};  // if the loss is the cross entropy of tokens
  std::optional<double> eval_accuracy;
  std::optional<double> eval_top5_accuracy = {};
  std::optional<double> eval_bits_per_byte;  // if the data's bytes per token are known

  [[nodiscard]] double tokens_per_s() const;
  [[nodiscard]] double wait_share() const;  // mean over the ranks, of step_s
};

[[nodiscard]] Json metrics_to_json(const StepMetrics& metrics);
// Reads a line that may be of any version of Motley, or damaged: missing values are NaN, empty or
// 0. kCorrupt, naming the source, if it has no step or an impossible value.
[[nodiscard]] Result<StepMetrics> metrics_from_json(const Json& json, const std::string& source);

}  // namespace motley
