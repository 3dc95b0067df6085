// ReportCollector: collects the ranks' step reports for the run's report. One owner thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "models/spec/model_spec.h"
#include "plan/plan.h"
#include "protocol/protocol.h"
#include "record/run_report.h"

namespace motley {

class ReportCollector {
 public:
  explicit ReportCollector(int rank_count) : ranks_(static_cast<std::size_t>(rank_count)) {}

  // REQUIRES: 0 <= rank < rank_count.
  void add_step(Rank rank, const StepReport& report);
  void add_peak(Rank rank, std::int64_t peak_bytes);

  // Medians over the steps except the first, which touches all memory for the first time and is not
  // typical; in a long run, over the last few thousand. kConfig if the plan names an unknown codec.
  [[nodiscard]] Result<RunReport> report(const Plan& plan, const ModelSpec& model) const;

 private:
  struct MeasuredStep {
    double step_s = 0;
    StepTimes times;
    std::uint64_t wire_bytes = 0;
  };

  struct RankSteps {
    std::int64_t first_step = 0;
    std::int64_t last_step = 0;
    std::int64_t count = 0;
    std::vector<MeasuredStep> steps;  // ring buffer of the newest steps, without the first step
    std::int64_t peak_bytes = 0;
  };

  std::vector<RankSteps> ranks_;  // [Rank]
};

}  // namespace motley
