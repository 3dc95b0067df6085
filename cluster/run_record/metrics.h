// StepMetrics: the ranks' reports of a step, combined.
// File format: docs/formats/metrics.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/json.h"
#include "base/result.h"
#include "plan/wait_times.h"
#include "protocol/protocol.h"

namespace motley {

struct StepMetrics {
  std::int64_t step = 0;
  double loss = 0;  // mean over the tokens of the global batch, in nats
  std::int64_t tokens = 0;
  std::optional<double> accuracy;  // fraction of tokens predicted correctly, if counted
  double step_s = 0;               // of the slowest rank
  double predicted_step_s = 0;
  double lr = 0;
  double grad_norm = 0;  // before clipping
  bool skipped = false;
  bool without_targets = false;          // the loss counted none: the step changed nothing
  std::optional<double> gradient_scale;  // with fp16
  bool is_computed = true;               // otherwise loss and grad_norm are meaningless
  std::uint64_t wire_bytes = 0;          // sent by all ranks
  double bubble = 0;                     // fraction of the ranks' time not spent computing

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

  // A rank's time in the step.
  struct RankTimes {
    double compute_s = 0;  // all time except waiting; includes the next two
    double codec_s = 0;
    double optimizer_s = 0;
    WaitTimes wait_s;
    std::int64_t memory_bytes = 0;  // resident after the step; 0 = unknown
  };

  // The bytes that one rank sent to another.
  struct Sent {
    Rank from;
    Rank to;
    std::uint64_t bytes = 0;
  };

  double time_s = 0;             // since 1970 UTC, at the step's completion; 0 = unknown
  std::vector<RankTimes> ranks;  // [Rank]; empty in files of earlier versions
  std::vector<Sent> links;       // pairs with traffic
  std::optional<double> eval_loss;
  bool eval_without_targets = false;  // there was an evaluation, whose loss counted no target
  std::optional<double> eval_accuracy;
  std::optional<double> eval_bits_per_byte;  // if the data's bytes per token are known

  [[nodiscard]] double tokens_per_s() const;
  [[nodiscard]] double wait_share() const;  // mean over the ranks, of step_s
};

[[nodiscard]] Json metrics_to_json(const StepMetrics& metrics);
// Reads a line that may be of any version of Motley, or damaged: missing values are NaN, empty or
// 0. kCorrupt, naming the source, if it has no step or an impossible value.
[[nodiscard]] Result<StepMetrics> metrics_from_json(const Json& json, const std::string& source);

// Combines the reports of all ranks; one owner thread.
class MetricsCollector {
 public:
  // computes: whether the run's devices do (DeviceCapabilities).
  MetricsCollector(int rank_count, double predicted_step_s, bool computes = true);

  // Returns the metrics of the step after its last report. kInternal if ranks disagree on the loss,
  // which is computed once and must have the same bits everywhere; kPeer if a rank reports a step
  // twice, or is further ahead of another than the schedule permits.
  // REQUIRES: 0 <= rank < rank_count.
  [[nodiscard]] Result<std::optional<StepMetrics>> add(Rank rank, const StepReport& report);

 private:
  using Reports = std::vector<std::optional<StepReport>>;  // [Rank]

  [[nodiscard]] Result<StepMetrics> combine(const Reports& reports) const;

  int rank_count_;
  double predicted_step_s_;
  bool computes_;
  std::int64_t last_complete_ = 0;
  std::map<std::int64_t, Reports> open_;  // by step
};

}  // namespace motley
