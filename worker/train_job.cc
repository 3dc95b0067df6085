#include "worker/train_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/system/privacy.h"
#include "base/system/system_memory.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/launch_mark.h"
#include "comm/frames/frame_link.h"
#include "compression/codec_chain.h"
#include "compression/feedback/gradient_compressor.h"
#include "models/device/compute_device.h"
#include "models/device/device_standstill.h"
#include "models/device/kinds/library_exception.h"
#include "models/device/number_types.h"
#include "models/device/product_type.h"
#include "models/layers/failure_of.h"
#include "models/spec/model_spec.h"
#include "partitioner/search/planner.h"
#include "pipeline/execute/early_bytes.h"
#include "pipeline/execute/executor.h"
#include "pipeline/schedule/schedules.h"
#include "pipeline/schedule/validate.h"
#include "protocol/data_message.h"
#include "rehearsal/virtual_compute.h"
#include "training/device_stage_clock.h"
#include "training/device_watch.h"
#include "training/first_state.h"
#include "training/memory_shortage.h"
#include "training/stage_state.h"
#include "training/stage_trainer.h"
#include "training/vote/step_voter.h"
#include "worker/batches.h"
#include "worker/join_ranks.h"
#include "worker/save_shard.h"
#include "worker/training_loop.h"

namespace motley {
namespace {

TrainingLoopOptions loop_options(const Job& job) {
  const Config& config = job.config;
  TrainingLoopOptions options;
  options.last_step = config.train.steps;
  if (job.stop_after > 0) options.last_step = std::min(job.stop_after, config.train.steps);
  options.trace_steps = config.run.trace_steps;
  options.trace_spans = trace_spans_max(job.plan.rank_count());
  options.save_every = config.checkpoint.every;
  options.eval_every = config.train.eval_every;
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
                             const StageVotes& votes) {
  const auto samples = static_cast<std::size_t>(job.plan.micro_batch);
  std::vector<std::size_t> output_floats;
  for (const ChunkPlan& chunk : job.plan.chunks) {
    const auto& last =
        model.layers[static_cast<std::size_t>(chunk.first_layer + chunk.layer_count - 1)];
    output_floats.push_back(samples * static_cast<std::size_t>(last.output_floats_per_sample()));
  }
  const MessageSizes sizes{output_floats,
                           samples * static_cast<std::size_t>(model.sample.target.count()),
                           votes.vote_bytes_max()};
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

  Result<void> join(const StageParts& stage) {
    const Plan& plan = job_.plan;
    const std::uint64_t early_bytes =
        early_bytes_of(job_, model_, schedules_.training, stage.votes);
    MOTLEY_ASSIGN(transport_, join_ranks(job_, job_.rank, plan.rank_count(), launcher_,
                                         patience().timeout_s(), early_bytes));
    link_.emplace(*transport_, job_.rank, epoch_of(job_), plan_hash(plan));
    MOTLEY_ASSIGN(
        executor_,
        Executor::make(job_.rank, plan, *link_, stage, activity_,
                       {gradient_compression(job_.config.compression, plan.gradient_codec),
                        patience(), leaves_processor_free(plan.ranks[job_.rank.index()].device)}));
    launcher_.send({{"event", "ready"}});
    return {};
  }

  // Ends what computes and sends beside the compute thread, before what it was lent goes.
  void leave() { executor_.reset(); }

  // Once joined.
  [[nodiscard]] Executor& executor() { return *executor_; }

  [[nodiscard]] WorkCounter& work() { return activity_.work(); }

  [[nodiscard]] FrameLink& link() { return *link_; }

  // A wait may last as long as the other stages compute, or save; a step that takes four times its
  // prediction while no stage gets on has gone wrong.
  [[nodiscard]] Patience patience() const {
    return {std::max(job_.config.comm.timeout_s, 4 * job_.plan.predicted_step_s),
            launcher_.group_progress()};
  }

  Result<void> train(const StepVoter& voter, Evaluator& evaluator, ShardSaver& saver) {
    Batches batches(schedules_.training, voter, *link_, *executor_);
    TrainingLoop loop(loop_options(job_), batches, evaluator, saver, launcher_);
    MOTLEY_TRY(loop.run());
    part_ranks(*link_, job_.rank, job_.plan.rank_count(), voter.progress().step + 1,
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

// Leaves the run where a scope ends, however it ends.
class LeavesAtTheEnd {
 public:
  explicit LeavesAtTheEnd(RankRun& run) : run_(run) {}

  ~LeavesAtTheEnd() { run_.leave(); }

  LeavesAtTheEnd(const LeavesAtTheEnd&) = delete;
  LeavesAtTheEnd& operator=(const LeavesAtTheEnd&) = delete;

 private:
  RankRun& run_;
};

// Parameters and moments of this rank, and what its sums of gradients still owe.
class StateSaver final : public ShardSaver {
 public:
  // All that is lent must outlive it.
  StateSaver(const Job& job, const StepVoter& voter, StageState& state, RankRun& run)
      : job_(job), voter_(voter), state_(state), run_(run) {}

  [[nodiscard]] Result<std::optional<Shard>> save() override {
    std::vector<TensorView> moments = state_.moment_views();
    // Between steps the gradients are 0, so that they have room for what the sums still owe.
    if (run_.executor().add_residuals()) {
      std::ranges::move(state_.residual_views(job_.rank.value), std::back_inserter(moments));
    }
    const SavePlace place{job_.run_dir, job_.launch, voter_.progress().step};
    Result<Shard> shard =
        save_shard(place, job_.rank, job_.plan.rank_count(), run_.link(),
                   run_.patience().deadline(), state_.parameter_views(), moments, &run_.work());
    state_.clear_gradients();
    if (!shard.ok()) return shard.error();
    return std::optional<Shard>(std::move(shard).value());
  }

 private:
  const Job& job_;
  const StepVoter& voter_;
  StageState& state_;
  RankRun& run_;
};

StepVoter make_voter(const Job& job,
                     const ModelSpec& model,
                     std::function<BatchLoss()> loss,
                     SteppedState& state,
                     CheckpointState progress,
                     const LauncherChannel& launcher) {
  return {job.config.train,
          static_cast<int>(model.layers.size()),
          copy_groups(job.plan, tied_across_ranks(model, job.plan)),
          job.rank,
          std::move(loss),
          state,
          std::move(progress),
          [&launcher] { return launcher.is_to_finish(); }};
}

Result<void> rehearse(const Job& job,
                      const ModelSpec& model,
                      const LauncherChannel& launcher,
                      RankRun& run) {
  VirtualCompute compute(job.config.train, model, job.plan, job.rank, *job.virtual_speed,
                         system_wait_time());
  StepVoter voter = make_voter(
      job, model, [&compute] { return compute.loss(); }, compute, {}, launcher);
  NothingHeld nothing;
  MOTLEY_TRY(run.join({compute, compute, voter}));
  return run.train(voter, nothing, nothing);
}

// For a compute thread that does not come back: nothing of the process can end in order.
std::function<void(const std::string&)> leave_with_error(LauncherChannel& launcher,
                                                         const Activity& activity,
                                                         const ComputeDevice& device) {
  return [&](const std::string& words) {
    const Error error = failure_of(DeviceStandstill(device.torch().str(), device.patience_s()),
                                   fmt::format("{} of step {}", words, activity.step()));
    Json event = error_to_json(error);
    event["event"] = "error";
    launcher.send(event);
    std::_Exit(static_cast<int>(error.code));
  };
}

Result<void> train(const Job& job,
                   const ModelSpec& model,
                   const Schedules& schedules,
                   const ComputeDevice& device,
                   LauncherChannel& launcher,
                   Activity& activity,
                   RankRun& run) {
  MOTLEY_ASSIGN(const auto trainer,
                StageTrainer::make(job.config, job.plan, job.rank, model, run.work(), device));
  if (const std::string& wanted = job.config.train.precision; wanted != "fp32") {
    launcher.send(
        {{"event", "precision"}, {"numbers", number_type_name(product_type(device, wanted))}});
  }
  const Source* source = trainer->source();
  // The launcher compares what the ranks with the data read, and with what the run has read so far.
  if (source != nullptr) {
    const DataIdentity data = source->identity();
    launcher.send(data_event({data.bytes, data.hash}));
  }
  const auto tied = model.tied_pair();
  StageState state(trainer->held(), trainer->make_memory(), tied ? tied->parameter : std::string(),
                   job.plan.micro_batches);
  MOTLEY_ASSIGN(CheckpointState progress,
                fill_state(state, job.config, model, job.resume_from, run.work()));
  StepVoter voter = make_voter(
      job, model, [&trainer] { return trainer->loss(); }, state, std::move(progress), launcher);
  const std::unique_ptr<StageClock> clock = stage_clock_of(device);
  MOTLEY_TRY(run.join({*trainer, state, voter, clock.get()}));
  HeldOutBatches held_out(job.config.train.eval_batches, job.config.train.global_batch,
                          schedules.evaluation, source != nullptr ? source->bytes_per_token() : 0,
                          voter, run.executor());
  StateSaver saver(job, voter, state, run);
  std::optional<DeviceWatch> watch;
  if (!device.is_host()) {
    constexpr double kLater_s = 1;  // than waits that can tell more
    watch.emplace(activity, device.patience_s() + kLater_s,
                  leave_with_error(launcher, activity, device));
  }
  const LeavesAtTheEnd leaves(run);  // before the trainer and the state go
  try {
    return run.train(voter, held_out, saver);
  } catch (const DeviceStandstill& stood) {
    // Where the host waited tells little: it runs ahead of the device.
    const auto under_way = run.executor().under_way();
    return failure_of(stood, under_way ? fmt::format("{} of step {}", to_words(under_way->action),
                                                     under_way->step)
                                       : activity.words());
  }
}

// The same; where memory runs out, with what the rank holds there.
Result<void> train_on_device(const Job& job,
                             const ModelSpec& model,
                             const Schedules& schedules,
                             LauncherChannel& launcher,
                             Activity& activity,
                             RankRun& run) {
  MOTLEY_ASSIGN(const ComputeDevice device,
                ComputeDevice::open(job.device, run.patience().timeout_s()));
  const auto own = device.memory();
  const std::int64_t had_bytes = own ? own->free_bytes : available_memory_bytes();
  try {
    return train(job, model, schedules, device, launcher, activity, run);
  } catch (const std::exception& thrown) {
    if (!lacks_memory(thrown)) throw;
    const MemoryShortage shortage{
        activity.step() == 0 ? "what it holds of the model" : activity.words(),
        first_line_of(thrown), had_bytes};
    return error_of(shortage, job.config.train, model, job.plan, job.rank);
  }
}

}  // namespace

Result<void> run_train_job(const Job& job, LauncherChannel& launcher, Activity& activity) {
  MOTLEY_ASSIGN(const ModelSpec model, describe_model(job.config.model));
  if (model.hash() != job.plan.model_hash) {
    return Error{ErrorCode::kConfig, "the launcher plans for another model than this machine has",
                 fmt::format("the package {} is another one here", job.config.model.path),
                 "copy the package to every machine, or keep it where all see it"};
  }
  // Shards are written where the launcher commits them, so the run folder must be the same one.
  MOTLEY_TRY(require_launch(job.run_dir, job.launch));
  keep_files_private(job.run_dir);
  MOTLEY_ASSIGN(const Schedules schedules,
                make_schedules(job.plan, tied_across_ranks(model, job.plan)));
  RankRun run(job, model, launcher, activity, schedules);
  return job.virtual_speed ? rehearse(job, model, launcher, run)
                           : train_on_device(job, model, schedules, launcher, activity, run);
}

}  // namespace motley
