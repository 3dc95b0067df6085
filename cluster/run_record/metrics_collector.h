// MetricsCollector: combines the ranks' reports of a step.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "protocol/protocol.h"
#include "record/step_metrics.h"

namespace motley {

// What the losses of a run are.
struct LossMeaning {
  bool is_computed = true;      // the run's devices compute it (DeviceCapabilities)
  bool has_perplexity = false;  // it is the cross entropy of tokens
};

// One owner thread.
class MetricsCollector {
 public:
  MetricsCollector(int rank_count, double predicted_step_s, LossMeaning loss = {});

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
  LossMeaning loss_;
  std::int64_t last_complete_ = 0;
  std::map<std::int64_t, Reports> open_;  // by step
};

}  // namespace motley
