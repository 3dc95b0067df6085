// Metrics: what the ranks report of a step, put together to one account of it.
// Format of the account: docs/formats/metrics.md.
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
  std::optional<double> accuracy;  // the share of the tokens predicted right, where counted
  double step_s = 0;               // of the slowest rank
  double predicted_step_s = 0;
  double lr = 0;
  double grad_norm = 0;  // before clipping
  bool skipped = false;
  bool without_targets = false;          // the loss counted none: nothing changed
  std::optional<double> gradient_scale;  // in fp16
  bool is_virtual = false;               // nothing was computed: loss and grad_norm mean nothing
  std::uint64_t wire_bytes = 0;          // sent by all ranks
  double bubble = 0;                     // share of the ranks' time in which they did not compute

  // Where the ranks' time went that was not spent in layers, in shares of it. What waits there
  // would be if links took no time and the pipeline needed no filling comes from unequal work; the
  // rest of the bubble is theirs.
  struct Losses {
    double imbalance = 0;
    double links_and_filling = 0;
    double codec = 0;
    double optimizer = 0;
  };

  Losses losses;
  std::vector<double> wait_s;  // [Rank]

  // What a rank did with its time in the step.
  struct RankTimes {
    double compute_s = 0;  // all but waiting: of it
    double codec_s = 0;
    double optimizer_s = 0;
    WaitTimes wait_s;
    std::int64_t memory_bytes = 0;  // resident after the step; 0 = unknown
  };

  // What one rank sent another.
  struct Sent {
    Rank from;
    Rank to;
    std::uint64_t bytes = 0;
  };

  double time_s = 0;             // since 1970 UTC, when the step was complete; 0 = unknown
  std::vector<RankTimes> ranks;  // [Rank]; empty in files of earlier versions
  std::vector<Sent> links;       // of pairs that sent anything
  std::optional<double> eval_loss;
  bool eval_without_targets = false;  // there was an evaluation, whose loss counted none
  std::optional<double> eval_accuracy;
  std::optional<double> eval_bits_per_byte;  // when the data tells bytes per token

  [[nodiscard]] double tokens_per_s() const;
  [[nodiscard]] double wait_share() const;  // mean over the ranks, of step_s
};

[[nodiscard]] Json metrics_to_json(const StepMetrics& metrics);
// Of a line that may be of any version of Motley, or damaged: what it does not say is not a number,
// empty or 0. kCorrupt, naming the source, where it says no step or what cannot be.
[[nodiscard]] Result<StepMetrics> metrics_from_json(const Json& json, const std::string& source);

// Gathers the reports of all ranks; one owner thread.
class MetricsCollector {
 public:
  // is_virtual: of the run's devices.
  MetricsCollector(int rank_count, double predicted_step_s, bool is_virtual = false);

  // The account of the step once its last report is in. kInternal when ranks disagree on the loss,
  // which is computed once and must be the same bits everywhere; kPeer when a rank reports a step
  // twice, or runs further ahead of another than the schedule can let it.
  // REQUIRES: 0 <= rank < rank_count.
  [[nodiscard]] Result<std::optional<StepMetrics>> add(Rank rank, const StepReport& report);

 private:
  using Reports = std::vector<std::optional<StepReport>>;  // [Rank]

  [[nodiscard]] Result<StepMetrics> combine(const Reports& reports) const;

  int rank_count_;
  double predicted_step_s_;
  bool is_virtual_;
  std::int64_t last_complete_ = 0;
  std::map<std::int64_t, Reports> open_;  // by step
};

}  // namespace motley
