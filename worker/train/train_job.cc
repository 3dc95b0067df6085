#include "worker/train/train_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/system/privacy.h"
#include "base/system/system_memory.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/fencing_token.h"
#include "checkpoint/save/shard_writer.h"
#include "models/device/compute_device.h"
#include "models/device/device_stall.h"
#include "models/device/dtype_support.h"
#include "models/device/kinds/library_exception.h"
#include "models/device/product_type.h"
#include "models/layers/failure_of.h"
#include "models/spec/model_spec.h"
#include "partitioner/search/planner.h"
#include "pipeline/execute/executor.h"
#include "protocol/data_message.h"
#include "simulated/virtual_compute.h"
#include "training/correction_state.h"
#include "training/device_stage_clock.h"
#include "training/device_watchdog.h"
#include "training/first_state.h"
#include "training/memory_shortage.h"
#include "training/momentum_correction/corrected_allreduces.h"
#include "training/rounds/outer_optimizer.h"
#include "training/stage_state.h"
#include "training/stage_trainer.h"
#include "training/vote/step_voter.h"
#include "worker/replication/folder_replicator.h"
#include "worker/train/rank_run.h"
#include "worker/train/save_timer.h"
#include "worker/train/spare_memory.h"
#include "worker/train/state_saver.h"
#include "worker/train/train_step.h"

namespace motley {
namespace {

// Leaves the run at the end of a scope, on every path.
class LeaveGroupOnExit {
 public:
  explicit LeaveGroupOnExit(RankRun& run) : run_(run) {}

  ~LeaveGroupOnExit() { run_.leave(); }

  LeaveGroupOnExit(const LeaveGroupOnExit&) = delete;
  LeaveGroupOnExit& operator=(const LeaveGroupOnExit&) = delete;

 private:
  RankRun& run_;
};

CorrectedAllreduces corrected_allreduces_of(const Job& job, const ModelSpec& model) {
  return corrected_allreduces(job.config, job.plan, model, tied_across_ranks(model, job.plan));
}

StepVoter make_voter(const Job& job,
                     const ModelSpec& model,
                     std::function<BatchLoss()> loss,
                     OptimizedState& state,
                     CheckpointState progress,
                     const LauncherChannel& launcher,
                     const SaveTimer& timer,
                     const CorrectedAllreduces& corrected) {
  return {job.config.train,
          static_cast<int>(model.layers.size()),
          copy_groups(job.plan, tied_across_ranks(model, job.plan)),
          job.rank,
          std::move(loss),
          state,
          std::move(progress),
          [&launcher] { return launcher.is_to_finish(); },
          [&timer] { return timer.is_due(); },
          {corrected.layers, corrected.parameter_share},
          job.plan.rounds};
}

Result<void> simulate(const Job& job,
                      const ModelSpec& model,
                      const LauncherChannel& launcher,
                      RankRun& run) {
  VirtualCompute compute(job.config.train, model, job.plan, job.rank, *job.virtual_speed,
                         system_wait_time());
  const SaveTimer never(0, now_s);
  const CorrectedAllreduces corrected = corrected_allreduces_of(job, model);
  StepVoter voter = make_voter(
      job, model, [&compute] { return compute.loss(); }, compute, {}, launcher, never, corrected);
  NullEvaluator nothing;
  MOTLEY_TRY(run.join({compute, compute, voter, nullptr, &compute}, corrected));
  return run.train(voter, nothing, nothing);
}

// The memory of its machine that this rank may use temporarily; the machine's other ranks may do
// the same.
std::uint64_t spare_bytes_of(const Job& job, const ComputeDevice& device) {
  const std::vector<RankPlan>& ranks = job.plan.ranks;
  const RankPlan& self = ranks[job.rank.index()];
  const auto here = std::ranges::count(ranks, self.machine, &RankPlan::machine);
  return spare_within_plan(spare_memory_bytes() / here, device.is_host() ? self.memory_bytes : 0,
                           resident_bytes());
}

SavingRank saving_rank(const Job& job) {
  SavingRank self{job.run_dir, job.launch, job.rank, job.plan.rank_count(), 0, {}};
  std::from_chars(job.store.data(), job.store.data() + job.store.size(), self.folder, 16);
  for (const RankPlan& rank : job.plan.ranks) self.machines.push_back(rank.machine);
  return self;
}

// The layers of the rank's chunks.
std::set<int> layers_held(const Job& job) {
  std::set<int> layers;
  for (const ChunkPlan& chunk : job.plan.chunks) {
    if (!chunk.is_on(job.rank)) continue;
    for (int l = 0; l < chunk.layer_count; ++l) layers.insert(chunk.first_layer + l);
  }
  return layers;
}

// The scope of the last step, after which a save is made.
StepScope saved_scope(const Job& job, const StepVoter& voter) {
  return step_scope(job.plan.rounds, voter.progress().step, job.config.train.steps);
}

// For a compute thread that hangs in a device call: an orderly exit is impossible.
std::function<void(const std::string&)> leave_with_error(LauncherChannel& launcher,
                                                         const Activity& activity,
                                                         const ComputeDevice& device) {
  return [&](const std::string& words) {
    const Error error = failure_of(DeviceStall(device.name(), device.stall_timeout_s()),
                                   fmt::format("{} in step {}", words, activity.step()));
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
                   const CheckLayers& check,
                   RankRun& run) {
  {
    // With a given profile, the layers have not been compared here before.
    const ProgressCounter::Task task(run.work(), "comparing layers with their references", 0);
    MOTLEY_TRY(check(job, model, layers_held(job), device,
                     [&](const std::string&) { run.work().add_one(); }));
  }
  MOTLEY_ASSIGN(const auto trainer,
                StageTrainer::make(job.config, job.plan, job.rank, model, run.work(), device));
  if (const std::string& wanted = job.config.train.precision; wanted != "fp32") {
    launcher.send({{"event", "precision"}, {"numbers", dtype_name(product_type(device, wanted))}});
  }
  const Source* source = trainer->source();
  // The launcher compares the data of the ranks with each other, and with the run's earlier data.
  if (source != nullptr) {
    const DataIdentity data = source->identity();
    // A resumed run has reported the remarks about its data before.
    launcher.send(data_event({data.bytes, data.hash,
                              job.resume_from.empty() ? training_remarks(*source, job.config.train)
                                                      : std::vector<std::string>(),
                              source->class_names()}));
  }
  const auto tied = model.tied_pair();
  StageState state(trainer->held(), trainer->make_memory(), tied ? tied->parameter : std::string(),
                   job.plan.micro_batches, job.config.train.ema);
  MOTLEY_ASSIGN(CheckpointState progress,
                fill_state(state, job.config, model, job.resume_from, run.work()));
  if (job.evaluations_begin_anew) progress.evaluations.reset();
  const CorrectedAllreduces corrected = corrected_allreduces_of(job, model);
  const auto spare_bytes = [&job, &device] { return spare_bytes_of(job, device); };
  ShardWriter writer(spare_bytes, &run.work());
  std::optional<OuterOptimizer> outer;
  CopyBeforeUpdate read_state(
      state, [&writer] { writer.copy_unwritten(); },
      [&outer](const CopyGroup& group) {
        return outer ? outer->anchor_hash(group) : std::nullopt;
      });
  constexpr double kMinute_s = 60;
  SaveTimer timer(job.config.checkpoint.every_minutes * kMinute_s, now_s);
  StepVoter voter = make_voter(
      job, model, [&trainer] { return trainer->loss(); }, read_state, std::move(progress), launcher,
      timer, corrected);
  if (const auto& rounds = job.plan.rounds) {
    outer.emplace(
        state, job.config.train, tied_across_ranks(model, job.plan),
        island_of(rounds, job.rank) == rounds->start_island,
        OuterOptimizer::Rule{rounds->outer_lr, rounds->outer_momentum, rounds->overlap_steps > 0},
        [&voter] { return voter.round_share(); }, [&writer] { writer.copy_unwritten(); });
  }
  const std::unique_ptr<StageClock> clock = stage_clock_of(device);
  std::unique_ptr<FolderReplicator> replicator;
  if (job.replicator) {
    MOTLEY_ASSIGN(replicator, FolderReplicator::open(job, launcher, run.work()));
  }
  MOTLEY_TRY(run.join({*trainer, state, voter, clock.get(), outer ? &*outer : nullptr}, corrected));
  if (replicator) replicator->start(run.link(), run.stall_timeout());
  const auto evaluation_of = [&](std::int64_t step) -> const Schedule& {
    const StepScope scope = step_scope(job.plan.rounds, step, job.config.train.steps);
    return scope == StepScope::kStart ? schedules.start_evaluation : schedules.evaluation;
  };
  HeldOutEvaluator held_out(job.config.train.eval_batches, job.config.train.global_batch,
                            evaluation_of, source != nullptr ? source->bytes_per_token() : 0, voter,
                            run.executor());
  AnchorEvaluator of_anchor(
      held_out,
      [&](std::int64_t step) {
        return step_scope(job.plan.rounds, step, job.config.train.steps) == StepScope::kAdopt;
      },
      [&outer] { outer->exchange_anchor(); });
  StateSaver saver(saving_rank(job),
                   {state, writer, timer, run.link(), launcher,
                    // The residuals of a synchronous start end with it.
                    [&](FeedbackKind what) {
                      return saved_scope(job, voter) == StepScope::kSynchronous &&
                             run.executor().add_feedback(what);
                    },
                    [&voter]() -> const CheckpointState& { return voter.progress(); },
                    [&run] { return run.stall_timeout().deadline(); }, spare_bytes,
                    [&]() -> RoundViews {
                      const StepScope scope = saved_scope(job, voter);
                      RoundViews views;
                      if (scope != StepScope::kRoundEnd && scope != StepScope::kAdopt) return views;
                      views.state =
                          outer->save_views([&run] { run.executor().add_round_feedback(); });
                      if (scope == StepScope::kAdopt) views.parameters = outer->anchor_views();
                      return views;
                    },
                    [&] {
                      return launcher.is_launcher_lost() ? require_launch(job.run_dir, job.launch)
                                                         : Result<void>();
                    }});
  std::optional<DeviceWatchdog> watch;
  if (!device.is_host()) {
    constexpr double kLater_s = 1;  // later than waits with a more precise error
    watch.emplace(activity, device.stall_timeout_s() + kLater_s,
                  leave_with_error(launcher, activity, device));
  }
  const LeaveGroupOnExit leaves(run);  // before the trainer and the state are destroyed
  if (!job.resume_from.empty()) {
    MOTLEY_ASSIGN(const CheckpointReader reader,
                  CheckpointReader::open_part(job.resume_from, &run.work()));
    MOTLEY_TRY(restore_correction_state(reader, job.config.train, model, job.plan,
                                        schedules.training.at(StepScope::kSynchronous), state,
                                        run.executor()));
    if (outer) {
      const bool in_round = voter.progress().step >= job.plan.rounds->start_steps;
      MOTLEY_ASSIGN(const FeedbackScope scope, outer->load(reader, in_round));
      MOTLEY_TRY(run.executor().set_round_feedback(scope));
    }
  }
  try {
    MOTLEY_TRY(run.train(voter, of_anchor, saver));
    return replicator ? replicator->finish(saver.last_step()) : Result<void>();
  } catch (const DeviceStall& stood) {
    // The host's position says little: it runs ahead of the device.
    const auto under_way = run.executor().under_way();
    return failure_of(stood, under_way ? fmt::format("{} in step {}", to_words(under_way->action),
                                                     under_way->step)
                                       : activity.words());
  }
}

// The same; if memory runs out, the error lists what the rank holds there.
Result<void> train_on_device(const Job& job,
                             const ModelSpec& model,
                             const Schedules& schedules,
                             LauncherChannel& launcher,
                             Activity& activity,
                             const CheckLayers& check,
                             RankRun& run) {
  MOTLEY_ASSIGN(const ComputeDevice device,
                ComputeDevice::open(job.device, run.stall_timeout().timeout_s()));
  const auto own = device.memory();
  const std::int64_t had_bytes = own ? own->free_bytes : available_memory_bytes();
  try {
    return train(job, model, schedules, device, launcher, activity, check, run);
  } catch (const std::exception& thrown) {
    if (!is_out_of_memory(thrown)) throw;
    const MemoryShortage shortage{activity.step() == 0 ? "its part of the model" : activity.words(),
                                  first_line_of(thrown), had_bytes};
    return error_of(shortage, job.config.train, model, job.plan, job.rank);
  }
}

}  // namespace

Result<void> run_train_job(const Job& job,
                           LauncherChannel& launcher,
                           Activity& activity,
                           const CheckLayers& check) {
  MOTLEY_ASSIGN(const ModelSpec model, describe_model(job.config.model));
  if (model.hash() != job.plan.model_hash) {
    return Error{ErrorCode::kConfig,
                 "the launcher's plan is for a different model from this machine's",
                 fmt::format("the package {} differs here", job.config.model.path),
                 "copy the package to every machine, or store it in a shared folder"};
  }
  // Without a machine-local folder, shards are written to the launcher's, where it commits them.
  if (job.store.empty()) MOTLEY_TRY(require_launch(job.run_dir, job.launch));
  keep_files_private(job.run_dir);
  MOTLEY_ASSIGN(const Schedules schedules,
                make_schedules(job.plan, tied_across_ranks(model, job.plan)));
  RankRun run(job, model, launcher, activity, schedules);
  if (!capabilities_of(job.device).computes) return simulate(job, model, launcher, run);
  return train_on_device(job, model, schedules, launcher, activity, check, run);
}

}  // namespace motley
