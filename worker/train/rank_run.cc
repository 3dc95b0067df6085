#include "worker/train/rank_run.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/wire_sizes.h"
#include "checkpoint/fencing_token.h"
#include "models/device/compute_device.h"
#include "partitioner/search/planner.h"
#include "pipeline/execute/unexpected_bytes.h"
#include "pipeline/schedule/schedules.h"
#include "pipeline/schedule/validate.h"
#include "plan/device_kinds.h"
#include "worker/group/join_ranks.h"
#include "worker/replication/file_copies.h"
#include "worker/train/end_request.h"
#include "worker/train/train_step.h"

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
  // A run that saves only at its end also has no checkpoint before the decay.
  options.saves_before_decay = config.checkpoint.every > 0;
  options.eval_every = config.train.eval_every;
  options.early_stopping = config.train.early_stopping;
  options.keeps_best = config.checkpoint.keep_best;
  const auto next_state = [rounds = job.plan.rounds, steps = config.train.steps](
                              std::int64_t step) { return next_state_step(rounds, step, steps); };
  options.last_step = next_state(options.last_step);
  options.has_state = [next_state](std::int64_t step) { return next_state(step) == step; };
  return options;
}

// The limit of unexpected bytes from peers: what the plan makes them send, at most
// kUnexpectedBytesMax.
std::uint64_t unexpected_bytes_of(const Job& job,
                                  const ModelSpec& model,
                                  const Schedule& schedule,
                                  const StageVotes& votes) {
  const auto samples = static_cast<std::size_t>(job.plan.micro_batch);
  std::vector<BoundarySize> boundaries;
  for (const ChunkPlan& chunk : job.plan.chunks) {
    const auto& last =
        model.layers[static_cast<std::size_t>(chunk.first_layer + chunk.layer_count - 1)];
    boundaries.push_back(last.boundary(job.plan.micro_batch));
  }
  const MessageSizes sizes{boundaries,
                           samples * static_cast<std::size_t>(model.sample.target.count()),
                           votes.vote_bytes_max()};
  return std::min(kUnexpectedBytesMax, unexpected_bytes_max(job.plan, schedule, sizes, job.rank) +
                                           unexpected_copy_bytes(job));
}

}  // namespace

Result<Schedules> make_schedules(const Plan& plan, bool tied) {
  Schedules schedules;
  for (const StepScope scope : step_scopes(plan.rounds)) {
    MOTLEY_ASSIGN(schedules.training[scope], make_schedule(plan, tied, scope));
  }
  schedules.evaluation = forward_schedule(schedule_input(plan, /*tied_across_ranks=*/false));
  schedules.start_evaluation =
      schedules.training.contains(StepScope::kStart)
          ? forward_schedule(schedule_input(plan_of_start(plan), /*tied_across_ranks=*/false))
          : schedules.evaluation;
  std::vector<const Schedule*> all = {&schedules.evaluation, &schedules.start_evaluation};
  for (const auto& [scope, schedule] : schedules.training) all.push_back(&schedule);
  for (const Schedule* const each : all) {
    MOTLEY_ASSIGN([[maybe_unused]] const ScheduleStats stats, validate_schedule(*each, tied));
  }
  return schedules;
}

Result<void> RankRun::join(const StageParts& stage, const CorrectedAllreduces& corrected) {
  const Plan& plan = job_.plan;
  const std::uint64_t unexpected_bytes = unexpected_bytes_of(
      job_, model_, schedules_.training.at(StepScope::kSynchronous), stage.votes);
  MOTLEY_ASSIGN(transport_, join_ranks(job_, job_.rank, plan.rank_count(), launcher_,
                                       stall_timeout().timeout_s(), unexpected_bytes));
  link_.emplace(*transport_, job_.rank, epoch_of(job_), plan_hash(plan));
  MOTLEY_ASSIGN(
      executor_,
      Executor::make(job_.rank, plan, *link_, stage, activity_,
                     {allreduce_compression(corrected, job_.config.compression, plan),
                      local_clip(corrected, job_.config, plan, model_, job_.rank), stall_timeout(),
                      leaves_processor_free(plan.ranks[job_.rank.index()].device), job_.cpu_share,
                      job_.threads}));
  launcher_.send({{"event", "ready"}});
  return {};
}

StallTimeout RankRun::stall_timeout() const {
  return {std::max(job_.config.comm.timeout_s, 4 * job_.plan.predicted_step_s),
          launcher_.group_progress_clock()};
}

Result<void> RankRun::train(StepVoter& voter, Evaluator& evaluator, ShardSaver& saver) {
  const auto schedule_of = [this](std::int64_t number) -> const Schedule& {
    return schedules_.training.at(step_scope(job_.plan.rounds, number, job_.config.train.steps));
  };
  std::optional<EndRequest> end_request;
  if (capabilities_of(job_.plan.ranks[job_.rank.index()].device).keeps_state) {
    // Until the process ends.
    [[maybe_unused]] const int mark = mark_worker(job_.run_dir, job_.launch).release();
    launcher_.outlive_launcher([&activity = activity_] { return activity.work().count(); });
    end_request.emplace([this] { launcher_.send({{"event", "leaving"}}); });
  }
  TrainStep step(schedule_of, voter, *link_, *executor_);
  TrainingLoop loop(loop_options(job_), step, evaluator, saver, launcher_);
  MOTLEY_TRY(loop.run());
  disconnect_ranks(*link_, job_.rank, job_.plan.rank_count(), voter.progress().step + 1,
                   launcher_.group_progress_clock());
  return {};
}

}  // namespace motley
