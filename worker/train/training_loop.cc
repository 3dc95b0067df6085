#include "worker/train/training_loop.h"

#include <utility>

#include "base/json.h"
#include "protocol/shard_message.h"
#include "protocol/trace_message.h"

namespace motley {

TrainingLoop::TrainingLoop(const TrainingLoopOptions& options,
                           StepRunner& steps,
                           Evaluator& evaluator,
                           ShardSaver& saver,
                           EventSink& events)
    : options_(options),
      steps_(steps),
      evaluator_(evaluator),
      saver_(saver),
      events_(events),
      trace_(options.trace_spans) {}

Result<void> TrainingLoop::run() {
  const std::int64_t first = steps_.progress().step + 1;
  bool has_ended = false;
  for (std::int64_t step = first; step <= options_.last_step && !has_ended; ++step) {
    set_recording(step - first);
    MOTLEY_TRY(run_step(step));
    if (is_saved(step)) MOTLEY_TRY(save());
    has_ended = ends_ && options_.has_state(step);
  }
  end_recording();
  saver_.finish();
  return {};
}

// The first steps touch memory for the first time; the trace begins after them.
void TrainingLoop::set_recording(std::int64_t steps_done) {
  constexpr std::int64_t kWarmUpSteps = 2;
  if (steps_done == kWarmUpSteps) steps_.record(&trace_);
  if (steps_done == kWarmUpSteps + options_.trace_steps) end_recording();
}

// The trace is sent as soon as it is complete: it is there while the run trains, and if it fails.
void TrainingLoop::end_recording() {
  if (std::exchange(has_sent_trace_, true)) return;
  steps_.record(nullptr);
  send_trace(trace_, [this](const Json& event) { events_.send(event); });
}

Result<void> TrainingLoop::run_step(std::int64_t step) {
  MOTLEY_ASSIGN(TrainedStep trained, steps_.run_step());
  StepReport& report = trained.report;
  changed_nothing_ = report.outcome.skipped || report.outcome.tokens == 0;
  save_waits_ = save_waits_ || trained.saves;
  ends_ = ends_ || trained.ends;
  is_before_decay_ = trained.is_before_decay;
  is_best_ = false;
  if (is_evaluated(step)) {
    const bool counts = std::exchange(evaluation_waits_, false);
    MOTLEY_ASSIGN(report.evaluation, evaluator_.evaluate(step));
    if (report.evaluation) compare(step, *report.evaluation, counts);
  }
  events_.send(step_to_json(report));
  return {};
}

void TrainingLoop::compare(std::int64_t step, const Evaluation& evaluation, bool counts) {
  if (!options_.keeps_best && options_.early_stopping == 0) return;
  const EvaluationRecord record = with_evaluation(
      steps_.progress().evaluations.value_or(EvaluationRecord{}), step, evaluation.loss, counts);
  steps_.set_evaluations(record);
  is_best_ = options_.keeps_best && record.best && record.best->step == step;
  ends_ = ends_ || (counts && stops_early(record, options_.early_stopping));
}

bool TrainingLoop::is_evaluated(std::int64_t step) {
  if (options_.eval_every == 0) return false;
  evaluation_waits_ = evaluation_waits_ || step % options_.eval_every == 0;
  return (evaluation_waits_ && options_.has_state(step)) || step == options_.last_step;
}

bool TrainingLoop::is_saved(std::int64_t step) {
  save_waits_ = save_waits_ || (options_.save_every > 0 && step % options_.save_every == 0);
  if (step == options_.last_step) return true;
  const bool has_state = options_.has_state(step);
  if (has_state && (ends_ || is_best_)) return true;
  if (options_.saves_before_decay && is_before_decay_) {
    if (has_state) return true;
    save_waits_ = true;
  }
  // A step without a change would repeat the previous save, and several of them would push out
  // older checkpoints. The step is the same on all ranks.
  return save_waits_ && has_state && !changed_nothing_;
}

Result<void> TrainingLoop::save() {
  save_waits_ = false;
  const Result<void> begun = saver_.save();
  if (begun.ok()) return {};
  if (begun.error().code != ErrorCode::kCorrupt) return begun.error();
  events_.send(shard_failed_event({steps_.progress().step, begun.error()}));
  return {};
}

}  // namespace motley
