#include "worker/train/train_step.h"

#include <vector>

#include "base/clock.h"
#include "base/system/system_memory.h"

namespace motley {

namespace {

// The bytes sent to each rank between two readings of the counters; ranks without any are omitted.
std::vector<StepReport::Sent> sent_between(const std::vector<std::uint64_t>& before,
                                           const std::vector<std::uint64_t>& after) {
  std::vector<StepReport::Sent> sent;
  for (Rank to{0}; to.index() < after.size(); ++to.value) {
    const std::uint64_t earlier = to.index() < before.size() ? before[to.index()] : 0;
    if (after[to.index()] > earlier) sent.push_back({to, after[to.index()] - earlier});
  }
  return sent;
}

void add_shares(const PredictionCounts& counts, Evaluation& evaluation) {
  if (counts.targets == 0) return;
  const auto targets = static_cast<double>(counts.targets);
  // A loss that counts correct predictions itself may weight them.
  if (!evaluation.accuracy) evaluation.accuracy = static_cast<double>(counts.first) / targets;
  if (counts.top_five) evaluation.top5_accuracy = static_cast<double>(*counts.top_five) / targets;
}

}  // namespace

Result<TrainedStep> TrainStep::run_step() {
  const std::uint64_t bytes_before = link_.wire_bytes();
  const std::vector<std::uint64_t> sent_before = link_.sent_bytes();
  const GradientScale scale = progress().gradient_scale.value_or(GradientScale{});
  const double start_s = now_s();
  const std::int64_t step = progress().step + 1;
  MOTLEY_ASSIGN(const StepTimes times,
                executor_.run(schedule_of_(step), {step, true, progress().samples, scale.value}));
  return TrainedStep{.report = {.step = progress().step,
                                .outcome = voter_.outcome(),
                                .step_s = now_s() - start_s,
                                .times = times,
                                .wire_bytes = link_.wire_bytes() - bytes_before,
                                .sent = sent_between(sent_before, link_.sent_bytes()),
                                .memory_bytes = memory_bytes()},
                     .ends = voter_.tally().ends,
                     .saves = voter_.tally().saves,
                     .is_before_decay = voter_.is_before_decay()};
}

std::int64_t TrainStep::memory_bytes() {
  constexpr double kRereadInterval_s = 0.25;
  const double time_s = now_s();
  if (!memory_read_at_s_ || time_s - *memory_read_at_s_ >= kRereadInterval_s) {
    memory_bytes_ = resident_bytes();
    memory_read_at_s_ = time_s;
  }
  return memory_bytes_;
}

Result<std::optional<Evaluation>> HeldOutEvaluator::evaluate(std::int64_t step) {
  double loss_sum = 0;
  double count = 0;
  double correct = 0;
  bool has_accuracy = true;
  std::optional<PredictionCounts> predictions;
  bool has_predictions = true;
  for (int batch = 0; batch < count_; ++batch) {
    const auto first_sample =
        static_cast<std::uint64_t>(batch) * static_cast<std::uint64_t>(samples_);
    MOTLEY_ASSIGN([[maybe_unused]] const StepTimes times,
                  executor_.run(schedule_of_(step), {step, false, first_sample}));
    const StepOutcome& outcome = voter_.outcome();
    const Tally& tally = voter_.tally();
    const double batch_count = tally.count;
    if (batch_count == 0) continue;
    loss_sum += outcome.loss * batch_count;
    count += batch_count;
    correct += outcome.accuracy.value_or(0) * batch_count;
    has_accuracy = has_accuracy && outcome.accuracy;
    has_predictions = has_predictions && tally.predictions;
    if (tally.predictions) {
      predictions = predictions ? sum_of(*predictions, *tally.predictions) : *tally.predictions;
    }
  }
  Evaluation evaluation{.tokens = reported_count(count),
                        .loss = loss_sum / count,
                        .bytes_per_token = bytes_per_token_};
  if (has_accuracy && count > 0) evaluation.accuracy = correct / count;
  if (has_predictions && predictions) add_shares(*predictions, evaluation);
  return std::optional(evaluation);
}

Result<std::optional<Evaluation>> AnchorEvaluator::evaluate(std::int64_t step) {
  if (!is_adopted_(step)) return evaluator_.evaluate(step);
  exchange_();
  auto evaluation = evaluator_.evaluate(step);
  exchange_();
  return evaluation;
}

}  // namespace motley
