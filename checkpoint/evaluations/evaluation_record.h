// EvaluationRecord: how a run's evaluations compare with each other; part of the state that a run
// resumes from. Pure functions. Kept only by runs with checkpoint.keep_best or
// train.early_stopping.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json_fwd.h"
#include "base/result.h"

namespace motley {

// The evaluation with the lowest held-out loss so far; of equal ones the first.
struct BestEvaluation {
  std::int64_t step = 0;
  double loss = 0;  // finite

  friend bool operator==(const BestEvaluation&, const BestEvaluation&) = default;
};

struct EvaluationRecord {
  std::optional<BestEvaluation> best;  // nullopt: no evaluation had a finite loss
  // Of the evaluations that count for early stopping, whose steps do not depend on where a session
  // ends: the lowest loss, and the number of them since then.
  std::optional<double> lowest;
  std::int64_t without_lower = 0;

  friend bool operator==(const EvaluationRecord&, const EvaluationRecord&) = default;
};

// The record after an evaluation. `loss`: NaN if it counted no target. `counts`: for early
// stopping.
[[nodiscard]] EvaluationRecord with_evaluation(EvaluationRecord record,
                                               std::int64_t step,
                                               double loss,
                                               bool counts);

// Whether the run stops early. `early_stopping`: as train.early_stopping; 0 = it never does.
[[nodiscard]] bool stops_early(const EvaluationRecord& record, std::int64_t early_stopping);

// "held-out loss 2.3140 after step 40".
[[nodiscard]] std::string best_text(const BestEvaluation& best);

// Why a run stops early: "3 evaluations in a row without a lower held-out loss".
[[nodiscard]] std::string early_stop_text(const EvaluationRecord& record);

[[nodiscard]] Json evaluation_record_to_json(const EvaluationRecord& record);
// kCorrupt if a value is impossible.
[[nodiscard]] Result<EvaluationRecord> evaluation_record_from_json(const Json& json,
                                                                   const std::string& source);

}  // namespace motley
