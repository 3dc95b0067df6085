#include "checkpoint/evaluations/evaluation_record.h"

#include <fmt/format.h>

#include <cmath>

#include "base/json.h"

namespace motley {
namespace {

bool is_lower(double loss, const std::optional<double>& than) {
  return std::isfinite(loss) && (!than || loss < *than);
}

Error invalid(const std::string& source, std::string cause) {
  return {ErrorCode::kCorrupt, fmt::format("an invalid record of evaluations, {}", source),
          std::move(cause), ""};
}

Result<double> loss_in(const Json& json, const char* key, const std::string& source) {
  MOTLEY_ASSIGN(const double loss, json_get<double>(json, key, source));
  if (std::isfinite(loss)) return loss;
  return invalid(source, fmt::format("'{}' is not finite", key));
}

}  // namespace

EvaluationRecord with_evaluation(EvaluationRecord record,
                                 std::int64_t step,
                                 double loss,
                                 bool counts) {
  const std::optional<double> best = record.best ? std::optional(record.best->loss) : std::nullopt;
  if (is_lower(loss, best)) record.best = {step, loss};
  if (!counts) return record;
  if (is_lower(loss, record.lowest)) {
    record.lowest = loss;
    record.without_lower = 0;
  } else {
    ++record.without_lower;
  }
  return record;
}

bool stops_early(const EvaluationRecord& record, std::int64_t early_stopping) {
  return early_stopping > 0 && record.without_lower >= early_stopping;
}

std::string best_text(const BestEvaluation& best) {
  return fmt::format("held-out loss {:.4f} after step {}", best.loss, best.step);
}

std::string early_stop_text(const EvaluationRecord& record) {
  return fmt::format("{} evaluation{} in a row without a lower held-out loss", record.without_lower,
                     record.without_lower == 1 ? "" : "s");
}

Json evaluation_record_to_json(const EvaluationRecord& record) {
  Json json = {{"without_lower", record.without_lower}};
  if (record.best) {
    json["best_step"] = record.best->step;
    json["best_loss"] = record.best->loss;
  }
  if (record.lowest) json["lowest"] = *record.lowest;
  return json;
}

Result<EvaluationRecord> evaluation_record_from_json(const Json& json, const std::string& source) {
  EvaluationRecord record;
  MOTLEY_ASSIGN(record.without_lower, json_get<std::int64_t>(json, "without_lower", source));
  if (record.without_lower < 0) return invalid(source, "'without_lower' is negative");
  if (json.contains("best_step") || json.contains("best_loss")) {
    BestEvaluation best;
    MOTLEY_ASSIGN(best.step, json_get<std::int64_t>(json, "best_step", source));
    MOTLEY_ASSIGN(best.loss, loss_in(json, "best_loss", source));
    if (best.step < 1) return invalid(source, "'best_step' is less than 1");
    record.best = best;
  }
  if (json.contains("lowest")) {
    MOTLEY_ASSIGN(record.lowest, loss_in(json, "lowest", source));
  }
  return record;
}

}  // namespace motley
