#include "cluster/prepare/predict.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/system/files.h"
#include "cluster/run_record/codec_bounds.h"
#include "partitioner/cost/cost_model.h"
#include "partitioner/cost/step_bytes.h"
#include "partitioner/search/simulate_plan.h"
#include "plan/rank_names.h"
#include "record/run_prediction.h"
#include "record/trace_file.h"

namespace motley {
namespace {

// A longer step takes a while to simulate, and is too large to display.
constexpr std::int64_t kSimulatedPassesMax = 1 << 15;

Result<std::vector<std::int64_t>> memory_limits(const PlannedRun& run, const PlanOptions& options) {
  MOTLEY_ASSIGN(const CostModel cost,
                CostModel::make(run.model, run.cluster, run.profile, options.default_threads,
                                process_state_of(options, run.plan), run.plan.gradient_codec));
  MOTLEY_ASSIGN(const std::vector<int> slots, slots_of_ranks(run.plan, cost));
  std::vector<std::int64_t> limits;
  for (const int slot : slots) {
    limits.push_back(cost.slots()[static_cast<std::size_t>(slot)].memory_bytes);
  }
  return limits;
}

Result<RunPrediction> predict(const PlannedRun& run, const PlanOptions& options) {
  MOTLEY_ASSIGN(const CodecBounds bounds, CodecBounds::of(run.plan));
  const StepBytes bytes(run.plan, ModelSizes(run.model),
                        [&](Rank /*from*/, std::int64_t values, const std::string& codec) {
                          return bounds.payload_bytes(codec, values);
                        });
  RunPrediction prediction;
  prediction.plan_hash = plan_hash_text(run.plan);
  for (const double sent : sent_bytes(run.plan, bytes)) prediction.ranks.push_back({sent, 0});
  if (!run.profile.devices.empty()) {
    MOTLEY_ASSIGN(const auto limits, memory_limits(run, options));
    for (std::size_t r = 0; r < limits.size(); ++r) {
      prediction.ranks[r].memory_limit_bytes = limits[r];
    }
  }
  for (const auto& [pair, sent] : pair_bytes(run.plan, bytes)) {
    const std::string& from = run.plan.ranks[pair.first.index()].machine;
    const std::string& to = run.plan.ranks[pair.second.index()].machine;
    prediction.links.push_back(
        {pair.first, pair.second, sent, run.cluster.link(from, to).bandwidth_bytes_per_s});
  }
  return prediction;
}

Result<std::string> predicted_trace(const PlannedRun& run, const PlanOptions& options) {
  MOTLEY_ASSIGN(
      const SimulatedPlan simulated,
      simulate_plan(run.plan, run.model, run.cluster, run.profile, options, {.spans = true}));
  return trace_text(simulated.step.spans, rank_names(run.plan));
}

// Writes the file, or removes it if there is no text: a file of another plan never remains.
void leave(const std::filesystem::path& path, const Result<std::string>& text, const Log& log) {
  std::error_code code;
  std::filesystem::remove(path, code);
  const Result<void> written = text.ok() ? write_file_atomic(path, *text) : text.error();
  if (written.ok()) return;
  log.debug(fmt::format("no {}: {}: {}", path.filename().string(), written.error().what,
                        written.error().cause));
}

}  // namespace

void write_prediction(const PlannedRun& run,
                      const PlanOptions& options,
                      const RunFolder& folder,
                      const Log& log) {
  const Result<RunPrediction> prediction = predict(run, options);
  const Result<std::string> text =
      prediction.ok() ? Result<std::string>(prediction_to_json(*prediction).dump() + "\n")
                      : prediction.error();
  leave(folder.prediction_path(), text, log);
  const std::int64_t passes =
      std::int64_t{run.plan.chunk_count()} * std::int64_t{run.plan.micro_batches};
  const bool is_simulated = !run.profile.devices.empty() && passes <= kSimulatedPassesMax;
  leave(folder.predicted_trace_path(),
        is_simulated ? predicted_trace(run, options)
                     : Error{ErrorCode::kConfig, "the step was not simulated",
                             "its devices have no profile, or it has too many micro-batches", ""},
        log);
}

}  // namespace motley
