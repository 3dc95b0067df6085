#include "pipeline/execute/gradient_sync.h"

#include <utility>

#include "pipeline/collectives/feedback_encoder.h"
#include "plan/gradient_group.h"

namespace motley {
namespace {

constexpr AllreduceId kTiedId{FrameKind::kTiedGradient, {}};

AllreduceId replica_id(ChunkId chunk) {
  return {FrameKind::kReplicaAllreduce, chunk};
}

}  // namespace

Result<std::unique_ptr<GradientSync>> GradientSync::make(Rank self,
                                                         const Plan& plan,
                                                         FrameLink& link,
                                                         StageGradients& gradients,
                                                         const CompressorOptions& options,
                                                         StallTimeout stall_timeout,
                                                         double local_clip,
                                                         bool within_island) {
  std::unique_ptr<GradientSync> sync(
      new GradientSync(self, link, gradients, options, stall_timeout, local_clip));
  const auto group_of = [&](const std::vector<Rank>& ranks) {
    return process_group(plan, within_island ? in_island_of(plan.rounds, self, ranks) : ranks);
  };
  for (const ChunkPlan& chunk : plan.chunks) {
    sync->replica_groups_.push_back(group_of(replica_ranks(chunk)));
  }
  sync->tied_group_ = group_of(tied_parameter_ranks(plan));
  // Reports an unknown codec here rather than in the first step.
  MOTLEY_TRY(FeedbackEncoder::make(options));
  return sync;
}

GradientSync::GradientSync(Rank self,
                           FrameLink& link,
                           StageGradients& gradients,
                           const CompressorOptions& options,
                           StallTimeout stall_timeout,
                           double local_clip)
    : self_(self),
      link_(link),
      gradients_(gradients),
      options_(options),
      stall_timeout_(stall_timeout),
      local_clip_(local_clip) {}

Result<std::vector<GradientReducer::Task>> GradientSync::tasks_of(
    const std::vector<Action>& actions) {
  std::vector<GradientReducer::Task> tasks;
  for (const Action& action : actions) {
    if (action.kind == ActionKind::kReduce) {
      tasks.push_back({replica_id(action.chunk), replica_groups_[action.chunk.index()],
                       gradients_.gradients(action.chunk)});
    } else if (action.kind == ActionKind::kReduceTied) {
      tasks.push_back({kTiedId, tied_group_, gradients_.tied_gradient()});
    }
  }
  if (!tasks.empty() && reducer_ == nullptr) {
    MOTLEY_ASSIGN(reducer_,
                  GradientReducer::make(link_, self_, options_, stall_timeout_, local_clip_));
  }
  return tasks;
}

Result<void> GradientSync::begin(const Schedule& schedule, std::int64_t step) {
  const std::vector<Action>& actions = schedule.ranks[self_.index()];
  last_changes_ = ActionRules(schedule.owners).last_changes(actions);
  MOTLEY_ASSIGN(const auto tasks, tasks_of(actions));
  return tasks.empty() ? Result<void>() : reducer_->begin(step, tasks);
}

StageCompute::OnReady GradientSync::on_ready(const Action& action, std::size_t at) {
  const AllreduceId id = replica_id(action.chunk);
  if (last_changes_.chunks[action.chunk.index()] != at || !has_allreduce(id)) return nullptr;
  return [this, id](std::size_t first) { reducer_->set_ready(id, first); };
}

void GradientSync::after(const Action& action, std::size_t at) {
  const AllreduceId id = replica_id(action.chunk);
  if (last_changes_.chunks[action.chunk.index()] == at && has_allreduce(id))
    reducer_->set_ready(id, 0);
  if (last_changes_.tied != at) return;
  gradients_.end_tied_gradient();
  if (has_allreduce(kTiedId)) reducer_->set_ready(kTiedId, 0);
}

Result<GradientReducer::Span> GradientSync::wait(const Action& action) {
  return reducer_->wait(action.kind == ActionKind::kReduce ? replica_id(action.chunk) : kTiedId);
}

void GradientSync::end_step(StepEffect effect) {
  if (reducer_ != nullptr) reducer_->end_step(effect);
}

bool GradientSync::add_feedback(FeedbackKind what) {
  const bool has_residual = options_.error_feedback && options_.chain != "none";
  const bool has_state = what == FeedbackKind::kResidual ? has_residual : options_.momentum > 0;
  if (!has_state || reducer_ == nullptr) return false;
  for (ChunkId chunk{0}; chunk.index() < replica_groups_.size(); ++chunk.value) {
    const AllreduceId id = replica_id(chunk);
    if (reducer_->has(id)) reducer_->add_feedback(what, id, gradients_.gradients(chunk));
  }
  if (reducer_->has(kTiedId)) reducer_->add_feedback(what, kTiedId, gradients_.tied_gradient());
  return true;
}

Result<void> GradientSync::set_feedback(FeedbackKind what,
                                        FeedbackScope scope,
                                        const Schedule& schedule) {
  MOTLEY_ASSIGN(const auto tasks, tasks_of(schedule.ranks[self_.index()]));
  for (const GradientReducer::Task& task : tasks) {
    MOTLEY_TRY(reducer_->set_feedback(what, scope, task));
  }
  return {};
}

bool GradientSync::has_allreduce(const AllreduceId& id) const {
  return reducer_ != nullptr && reducer_->has(id);
}

}  // namespace motley
