#include "worker/train_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "base/check.h"
#include "base/system/privacy.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/launch_mark.h"
#include "comm/frames/frame_link.h"
#include "compression/codec_chain.h"
#include "compression/feedback/gradient_compressor.h"
#include "models/spec/model_spec.h"
#include "partitioner/search/planner.h"
#include "pipeline/execute/early_bytes.h"
#include "pipeline/execute/executor.h"
#include "pipeline/schedule/schedules.h"
#include "pipeline/schedule/validate.h"
#include "protocol/data_message.h"
#include "rehearsal/virtual_compute.h"
#include "training/stage_trainer.h"
#include "worker/join_ranks.h"
#include "worker/save_shard.h"
#include "worker/training_loop.h"

namespace motley {
namespace {

// Batches of all ranks, run by the executor of this one.
class Batches final : public StepRunner {
 public:
  // All that is lent must outlive it.
  Batches(const Schedule& schedule, const TrainedStage& stage, FrameLink& link, Executor& executor)
      : schedule_(schedule), stage_(stage), link_(link), executor_(executor) {}

  [[nodiscard]] const CheckpointState& progress() const override { return stage_.progress(); }

  [[nodiscard]] Result<TrainedStep> run_step() override {
    const std::uint64_t bytes_before = link_.wire_bytes();
    MOTLEY_ASSIGN(const RunTimes times,
                  executor_.run(schedule_, {progress().step + 1, true, progress().samples}));
    return TrainedStep{stage_.outcome(), times, link_.wire_bytes() - bytes_before};
  }

  void record(TraceRecorder* trace) override { executor_.record(trace); }

 private:
  const Schedule& schedule_;
  const TrainedStage& stage_;
  FrameLink& link_;
  Executor& executor_;
};

// The first held-out batches, the same ones every time.
class HeldOutBatches final : public Evaluator {
 public:
  // All that is lent must outlive it; `schedule` runs forwards only.
  HeldOutBatches(const TrainConfig& train,
                 const Schedule& schedule,
                 const StageTrainer& trainer,
                 Executor& executor)
      : train_(train), schedule_(schedule), trainer_(trainer), executor_(executor) {}

  [[nodiscard]] Result<Evaluation> evaluate(std::int64_t step) override {
    double loss_sum = 0;
    std::int64_t tokens = 0;
    for (int batch = 0; batch < train_.eval_batches; ++batch) {
      const auto first_sample =
          static_cast<std::uint64_t>(batch) * static_cast<std::uint64_t>(train_.global_batch);
      MOTLEY_ASSIGN([[maybe_unused]] const RunTimes times,
                    executor_.run(schedule_, {step, false, first_sample}));
      loss_sum += trainer_.outcome().loss * static_cast<double>(trainer_.outcome().tokens);
      tokens += trainer_.outcome().tokens;
    }
    Evaluation evaluation;
    evaluation.loss = loss_sum / static_cast<double>(tokens);
    if (trainer_.source() != nullptr) {
      evaluation.bytes_per_token = trainer_.source()->bytes_per_token();
    }
    return evaluation;
  }

 private:
  const TrainConfig& train_;
  const Schedule& schedule_;
  const StageTrainer& trainer_;
  Executor& executor_;
};

// A virtual device holds nothing that could be evaluated or saved.
class Rehearsal final : public Evaluator, public ShardSaver {
 public:
  [[nodiscard]] Result<Evaluation> evaluate(std::int64_t /*step*/) override {
    return Error{ErrorCode::kInternal, "a rehearsal cannot be evaluated", "", ""};
  }

  [[nodiscard]] Result<Shard> save() override {
    return Error{ErrorCode::kInternal, "a rehearsal cannot be saved", "", ""};
  }
};

TrainingLoopOptions loop_options(const Job& job) {
  const Config& config = job.config;
  TrainingLoopOptions options;
  options.last_step = config.train.steps;
  if (job.stop_after > 0) options.last_step = std::min(job.stop_after, config.train.steps);
  options.trace_steps = config.run.trace_steps;
  options.trace_spans = trace_spans_max(job.plan.rank_count());
  options.saves = !job.virtual_speed;
  options.save_every = config.checkpoint.every;
  options.eval_every = job.virtual_speed ? 0 : config.train.eval_every;
  return options;
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

// What all ranks agree on before anything is computed, both validated.
struct Schedules {
  Schedule training;
  Schedule evaluation;
};

Result<Schedules> make_schedules(const Plan& plan, bool tied) {
  Schedules schedules;
  MOTLEY_ASSIGN(schedules.training, make_schedule(plan, tied));
  schedules.evaluation = forward_schedule(schedule_input(plan, /*tied_across_ranks=*/false));
  for (const Schedule* each : {&schedules.training, &schedules.evaluation}) {
    MOTLEY_ASSIGN([[maybe_unused]] const ScheduleStats stats, validate_schedule(*each, tied));
  }
  return schedules;
}

// What a peer may make this rank keep: what the plan has it send, and never more than without one.
std::uint64_t early_bytes_of(const Job& job,
                             const ModelSpec& model,
                             const Schedule& schedule,
                             const TrainedStage& stage) {
  const auto samples = static_cast<std::size_t>(job.plan.micro_batch);
  std::vector<std::size_t> output_floats;
  for (const ChunkPlan& chunk : job.plan.chunks) {
    const auto& last =
        model.layers[static_cast<std::size_t>(chunk.first_layer + chunk.layer_count - 1)];
    output_floats.push_back(samples * static_cast<std::size_t>(last.output_floats_per_sample));
  }
  const MessageSizes sizes{output_floats,
                           samples * static_cast<std::size_t>(model.tokens_per_sample),
                           stage.vote_bytes_max()};
  return std::min(kEarlyBytesMax, early_bytes_max(job.plan, schedule, sizes, job.rank));
}

// One rank of the run, from joining the others to leaving them.
class RankRun {
 public:
  RankRun(const Job& job,
          const ModelSpec& model,
          LauncherChannel& launcher,
          Activity& activity,
          const Schedules& schedules)
      : job_(job), model_(model), launcher_(launcher), activity_(activity), schedules_(schedules) {}

  Result<void> join(TrainedStage& stage) {
    const Plan& plan = job_.plan;
    const std::uint64_t early_bytes = early_bytes_of(job_, model_, schedules_.training, stage);
    MOTLEY_ASSIGN(transport_, join_ranks(job_, job_.rank, plan.rank_count(), launcher_, timeout_s(),
                                         early_bytes));
    link_.emplace(*transport_, job_.rank, job_.epoch, plan_hash(plan));
    MOTLEY_ASSIGN(
        executor_,
        Executor::make(job_.rank, plan, *link_, stage, activity_,
                       {gradient_compression(job_.config.compression, plan.gradient_codec),
                        Patience(timeout_s(), launcher_.group_progress()),
                        leaves_processor_free(plan.ranks[job_.rank.index()].device)}));
    launcher_.send({{"event", "ready"}});
    return {};
  }

  // Once joined.
  [[nodiscard]] Executor& executor() { return *executor_; }

  [[nodiscard]] WorkCounter& work() { return activity_.work(); }

  [[nodiscard]] FrameLink& link() { return *link_; }

  // A wait may last as long as the other stages compute, or save; a step that takes four times its
  // prediction while no stage gets on has gone wrong.
  [[nodiscard]] double timeout_s() const {
    return std::max(job_.config.comm.timeout_s, 4 * job_.plan.predicted_step_s);
  }

  Result<void> train(const TrainedStage& stage, Evaluator& evaluator, ShardSaver& saver) {
    Batches batches(schedules_.training, stage, *link_, *executor_);
    TrainingLoop loop(loop_options(job_), batches, evaluator, saver, launcher_);
    MOTLEY_TRY(loop.run());
    part_ranks(*link_, job_.rank, job_.plan.rank_count(), stage.progress().step + 1,
               launcher_.group_progress());
    return {};
  }

 private:
  const Job& job_;
  const ModelSpec& model_;
  LauncherChannel& launcher_;
  Activity& activity_;
  const Schedules& schedules_;
  std::unique_ptr<Transport> transport_;
  std::optional<FrameLink> link_;
  std::unique_ptr<Executor> executor_;
};

// Parameters and moments of this rank, and what its sums of gradients still owe.
class StateSaver final : public ShardSaver {
 public:
  // All that is lent must outlive it.
  StateSaver(const Job& job, StageTrainer& trainer, RankRun& run)
      : job_(job), trainer_(trainer), run_(run) {}

  [[nodiscard]] Result<Shard> save() override {
    std::vector<TensorView> moments = trainer_.state().moment_views();
    // Between steps the gradients are 0, so that they have room for what the sums still owe.
    if (run_.executor().add_residuals()) {
      std::ranges::move(trainer_.state().residual_views(job_.rank.value),
                        std::back_inserter(moments));
    }
    const SavePlace place{job_.run_dir, job_.launch, trainer_.progress().step};
    Result<Shard> shard = save_shard(place, job_.rank, job_.plan.rank_count(), run_.link(),
                                     Deadline::after_s(run_.timeout_s()),
                                     trainer_.state().parameter_views(), moments, &run_.work());
    trainer_.clear_gradients();
    return shard;
  }

 private:
  const Job& job_;
  StageTrainer& trainer_;
  RankRun& run_;
};

Result<void> rehearse(const Job& job, const ModelSpec& model, RankRun& run) {
  VirtualCompute compute(job.config.train, model, job.plan, job.rank, *job.virtual_speed,
                         system_wait_time());
  Rehearsal nothing;
  MOTLEY_TRY(run.join(compute));
  return run.train(compute, nothing, nothing);
}

Result<void> train(const Job& job,
                   const ModelSpec& model,
                   const Schedules& schedules,
                   LauncherChannel& launcher,
                   RankRun& run) {
  MOTLEY_ASSIGN(const auto trainer, StageTrainer::make(job, model, run.work()));
  // The launcher compares what the ranks with the data read, and with what the run has read so far.
  if (trainer->source() != nullptr) {
    const DataIdentity data = trainer->source()->identity();
    launcher.send(data_event({data.bytes, data.hash}));
  }
  MOTLEY_TRY(run.join(*trainer));
  HeldOutBatches held_out(job.config.train, schedules.evaluation, *trainer, run.executor());
  StateSaver saver(job, *trainer, run);
  return run.train(*trainer, held_out, saver);
}

}  // namespace

Result<void> run_train_job(const Job& job, LauncherChannel& launcher, Activity& activity) {
  MOTLEY_ASSIGN(const ModelSpec model, describe_model(job.config.model));
  MOTLEY_CHECK(model.hash() == job.plan.model_hash, "the launcher plans for this model");
  // Shards are written where the launcher commits them, so the run folder must be the same one.
  MOTLEY_TRY(require_launch(job.run_dir, job.launch));
  keep_files_private(job.run_dir);
  MOTLEY_ASSIGN(const Schedules schedules,
                make_schedules(job.plan, tied_across_ranks(model, job.plan)));
  RankRun run(job, model, launcher, activity, schedules);
  return job.virtual_speed ? rehearse(job, model, run)
                           : train(job, model, schedules, launcher, run);
}

}  // namespace motley
