#include "worker/train_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <vector>

#include "base/check.h"
#include "checkpoint/checkpoint.h"
#include "comm/frames/frame_link.h"
#include "compression/codec_chain.h"
#include "compression/feedback/gradient_compressor.h"
#include "models/spec/model_spec.h"
#include "partitioner/search/planner.h"
#include "pipeline/execute/executor.h"
#include "pipeline/schedule/schedules.h"
#include "protocol/shard_message.h"
#include "protocol/trace_message.h"
#include "rehearsal/virtual_compute.h"
#include "training/stage_trainer.h"
#include "worker/join_ranks.h"

namespace motley {
namespace {

// What a rank computes. One of the two is set: a virtual device trains nothing.
struct Stage {
  std::unique_ptr<StageTrainer> trainer;
  std::unique_ptr<VirtualCompute> waiting;

  [[nodiscard]] TrainedStage& steps() const {
    return trainer != nullptr ? static_cast<TrainedStage&>(*trainer) : *waiting;
  }
};

Result<Stage> make_stage(const Job& job, const ModelSpec& model) {
  Stage stage;
  if (job.virtual_speed) {
    stage.waiting = std::make_unique<VirtualCompute>(job.config.train, model, job.plan, job.rank,
                                                     *job.virtual_speed, system_wait_time());
  } else {
    MOTLEY_ASSIGN(stage.trainer, StageTrainer::make(job, model));
  }
  return stage;
}

// The steps of one rank, from the first of this session to the last.
class TrainingLoop {
 public:
  // `trainer`: as `stage`, for evaluations and checkpoints; nullptr where there are none.
  TrainingLoop(const Job& job,
               WorkerChannel& channel,
               const TrainedStage& stage,
               StageTrainer* trainer,
               FrameLink& link,
               Executor& executor,
               Schedule schedule,
               Schedule evaluation)
      : job_(job),
        channel_(channel),
        stage_(stage),
        trainer_(trainer),
        link_(link),
        executor_(executor),
        schedule_(std::move(schedule)),
        evaluation_(std::move(evaluation)),
        trace_(trace_spans_max(job.plan.rank_count())) {}

  Result<void> run() {
    const TrainConfig& train = job_.config.train;
    const std::int64_t first = stage_.progress().step + 1;
    const std::int64_t last =
        job_.stop_after > 0 ? std::min(job_.stop_after, train.steps) : train.steps;
    for (std::int64_t step = first; step <= last; ++step) {
      set_recording(step - first);
      MOTLEY_TRY(run_step(step));
      if (trainer_ == nullptr) continue;
      const std::int64_t every = job_.config.checkpoint.every;
      if (step == last || (every > 0 && step % every == 0)) MOTLEY_TRY(save());
    }
    executor_.record(nullptr);
    send_trace(trace_, [this](const Json& event) { channel_.send(event); });
    part_ranks(link_, job_.rank, job_.plan.rank_count(), last + 1);
    return {};
  }

 private:
  // The first steps touch memory for the first time; the trace begins after them.
  void set_recording(std::int64_t steps_done) {
    constexpr std::int64_t kWarmUpSteps = 2;
    if (steps_done == kWarmUpSteps) executor_.record(&trace_);
    if (steps_done == kWarmUpSteps + job_.config.run.trace_steps) executor_.record(nullptr);
  }

  Result<void> run_step(std::int64_t step) {
    const std::uint64_t bytes_before = link_.wire_bytes();
    MOTLEY_ASSIGN(const RunTimes times,
                  executor_.run(schedule_, {step, true, stage_.progress().samples}));
    const StepOutcome outcome = stage_.outcome();
    StepReport report;
    report.step = step;
    report.loss = outcome.loss;
    report.tokens = outcome.tokens;
    report.step_s = times.total_s;
    report.lr = outcome.lr;
    report.grad_norm = outcome.grad_norm;
    report.skipped = outcome.skipped;
    report.wire_bytes = link_.wire_bytes() - bytes_before;
    report.compute_s = times.compute_s;
    report.codec_s = times.codec_s;
    report.optimizer_s = times.optimizer_s;
    report.wait_s = times.wait_s;
    const std::int64_t eval_every = job_.config.train.eval_every;
    if (trainer_ != nullptr && eval_every > 0 && step % eval_every == 0) {
      MOTLEY_TRY(evaluate(report));
    }
    Json event = step_to_json(report);
    event["event"] = "step";
    channel_.send(event);
    return {};
  }

  // The mean loss over the first held-out batches, the same ones every time.
  Result<void> evaluate(StepReport& report) {
    double loss_sum = 0;
    std::int64_t tokens = 0;
    for (int batch = 0; batch < job_.config.train.eval_batches; ++batch) {
      const auto first_sample = static_cast<std::uint64_t>(batch) *
                                static_cast<std::uint64_t>(job_.config.train.global_batch);
      MOTLEY_ASSIGN([[maybe_unused]] const RunTimes times,
                    executor_.run(evaluation_, {report.step, false, first_sample}));
      loss_sum += trainer_->outcome().loss * static_cast<double>(trainer_->outcome().tokens);
      tokens += trainer_->outcome().tokens;
    }
    report.evaluated = true;
    report.eval_loss = loss_sum / static_cast<double>(tokens);
    if (trainer_->source() != nullptr) {
      report.eval_bytes_per_token = trainer_->source()->bytes_per_token();
    }
    return {};
  }

  Result<void> save() {
    const CheckpointState& state = trainer_->progress();
    std::vector<TensorView> moments = trainer_->state().moment_views();
    // Between steps the gradients are 0, so that they have room for what the sums still owe.
    if (executor_.add_residuals()) {
      std::ranges::move(trainer_->state().residual_views(job_.rank.value),
                        std::back_inserter(moments));
    }
    MOTLEY_ASSIGN(const Shard shard,
                  write_shard(job_.run_dir, state.step, job_.rank.value, job_.plan.rank_count(),
                              trainer_->state().parameter_views(), moments));
    trainer_->clear_gradients();
    channel_.send(shard_event({state, shard}));
    return {};
  }

  const Job& job_;
  WorkerChannel& channel_;
  const TrainedStage& stage_;
  StageTrainer* trainer_;
  FrameLink& link_;
  Executor& executor_;
  const Schedule schedule_;
  const Schedule evaluation_;
  TraceRecorder trace_;
};

// Shards are written where the launcher commits them, so the run folder must be the same one.
Result<void> check_run_folder(const std::filesystem::path& run_dir) {
  if (std::filesystem::exists(run_dir / "plan.json")) return {};
  return Error{ErrorCode::kConfig,
               fmt::format("the run folder {} is not there on this machine", run_dir.string()),
               "every machine writes its part of a checkpoint into it",
               "share the folder between the machines under one path (NFS, for example), and "
               "choose it by --run"};
}

// Only topk has a density to warm up.
CompressorOptions gradient_compression(const CompressionConfig& config, const std::string& codec) {
  CompressorOptions options;
  options.chain = codec;
  options.error_feedback = config.error_feedback;
  const auto chain = parse_codec_chain(codec);
  if (chain.ok() && chain->density) options.warmup_steps = config.warmup_steps;
  return options;
}

}  // namespace

Result<void> run_train_job(const Job& job, WorkerChannel& channel, Activity& activity) {
  MOTLEY_ASSIGN(const ModelSpec model, describe_model(job.config.model));
  MOTLEY_CHECK(model.hash() == job.plan.model_hash, "the launcher plans for this model");
  MOTLEY_TRY(check_run_folder(job.run_dir));
  MOTLEY_ASSIGN(Schedule schedule, make_schedule(job.plan, tied_across_ranks(model, job.plan)));
  Schedule evaluation = forward_schedule(schedule_input(job.plan, /*tied_across_ranks=*/false));
  for (const Schedule* each : {&schedule, &evaluation}) {
    MOTLEY_ASSIGN([[maybe_unused]] const ScheduleStats stats, validate_schedule(*each));
  }
  MOTLEY_ASSIGN(const Stage stage, make_stage(job, model));

  // A wait may last as long as the other stages compute; a step that takes four times its
  // prediction has gone wrong.
  const double timeout_s = std::max(job.config.comm.timeout_s, 4 * job.plan.predicted_step_s);
  MOTLEY_ASSIGN(const auto transport,
                join_ranks(job, job.rank, job.plan.rank_count(), channel, timeout_s));
  FrameLink link(*transport, job.rank, job.epoch, plan_hash(job.plan));
  MOTLEY_ASSIGN(
      const auto executor,
      Executor::make(job.rank, job.plan, link, stage.steps(), activity,
                     {gradient_compression(job.config.compression, job.plan.gradient_codec),
                      timeout_s, leaves_processor_free(job.plan.ranks[job.rank.index()].device)}));
  channel.send({{"event", "ready"}});
  TrainingLoop loop(job, channel, stage.steps(), stage.trainer.get(), link, *executor,
                    std::move(schedule), std::move(evaluation));
  return loop.run();
}

}  // namespace motley
