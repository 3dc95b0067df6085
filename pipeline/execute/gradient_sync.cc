#include "pipeline/execute/gradient_sync.h"

#include <utility>

#include "pipeline/reduce/feedback_encoder.h"
#include "plan/holders.h"

namespace motley {
namespace {

constexpr AllreduceId kTiedSum{FrameKind::kTiedGradient, {}};

AllreduceId sum_of(ChunkId chunk) {
  return {FrameKind::kReplicaSum, chunk};
}

}  // namespace

Result<std::unique_ptr<GradientSync>> GradientSync::make(Rank self,
                                                         const Plan& plan,
                                                         FrameLink& link,
                                                         StageGradients& gradients,
                                                         const CompressorOptions& options,
                                                         Patience patience,
                                                         double local_clip) {
  std::unique_ptr<GradientSync> sums(
      new GradientSync(self, link, gradients, options, patience, local_clip));
  for (const ChunkPlan& chunk : plan.chunks) {
    sums->holders_.push_back(process_group(plan, replica_ranks(chunk)));
  }
  sums->end_holders_ = process_group(plan, end_ranks(plan));
  // Refused now rather than in the first step.
  MOTLEY_TRY(FeedbackEncoder::make(options));
  return sums;
}

GradientSync::GradientSync(Rank self,
                           FrameLink& link,
                           StageGradients& gradients,
                           const CompressorOptions& options,
                           Patience patience,
                           double local_clip)
    : self_(self),
      link_(link),
      gradients_(gradients),
      options_(options),
      patience_(patience),
      local_clip_(local_clip) {}

Result<std::vector<GradientReducer::Task>> GradientSync::tasks_of(
    const std::vector<Action>& actions) {
  std::vector<GradientReducer::Task> tasks;
  for (const Action& action : actions) {
    if (action.kind == ActionKind::kReduce) {
      tasks.push_back({sum_of(action.chunk), holders_[action.chunk.index()],
                       gradients_.gradients(action.chunk)});
    } else if (action.kind == ActionKind::kReduceTied) {
      tasks.push_back({kTiedSum, end_holders_, gradients_.tied_gradient()});
    }
  }
  if (!tasks.empty() && reducer_ == nullptr) {
    MOTLEY_ASSIGN(reducer_, GradientReducer::make(link_, self_, options_, patience_, local_clip_));
  }
  return tasks;
}

Result<void> GradientSync::begin(const Schedule& schedule, std::int64_t step) {
  const std::vector<Action>& actions = schedule.ranks[self_.index()];
  last_changes_ = ActionRules(schedule.owners).last_changes(actions);
  MOTLEY_ASSIGN(const auto tasks, tasks_of(actions));
  return tasks.empty() ? Result<void>() : reducer_->begin(step, tasks);
}

StageCompute::OnFinal GradientSync::on_final(const Action& action, std::size_t at) {
  const AllreduceId sum = sum_of(action.chunk);
  if (last_changes_.chunks[action.chunk.index()] != at || !runs(sum)) return nullptr;
  return [this, sum](std::size_t first) { reducer_->set_final(sum, first); };
}

void GradientSync::after(const Action& action, std::size_t at) {
  const AllreduceId sum = sum_of(action.chunk);
  if (last_changes_.chunks[action.chunk.index()] == at && runs(sum)) reducer_->set_final(sum, 0);
  if (last_changes_.tied != at) return;
  gradients_.end_tied_gradient();
  if (runs(kTiedSum)) reducer_->set_final(kTiedSum, 0);
}

Result<GradientReducer::Span> GradientSync::wait(const Action& action) {
  return reducer_->wait(action.kind == ActionKind::kReduce ? sum_of(action.chunk) : kTiedSum);
}

void GradientSync::end_step(StepEffect effect) {
  if (reducer_ != nullptr) reducer_->end_step(effect);
}

bool GradientSync::add_kept(Kept what) {
  const bool owes = options_.error_feedback && options_.chain != "none";
  const bool keeps = what == Kept::kResidual ? owes : options_.momentum > 0;
  if (!keeps || reducer_ == nullptr) return false;
  for (ChunkId chunk{0}; chunk.index() < holders_.size(); ++chunk.value) {
    const AllreduceId sum = sum_of(chunk);
    if (reducer_->has(sum)) reducer_->add_kept(what, sum, gradients_.gradients(chunk));
  }
  if (reducer_->has(kTiedSum)) reducer_->add_kept(what, kTiedSum, gradients_.tied_gradient());
  return true;
}

Result<void> GradientSync::set_kept(Kept what, KeptBy whose, const Schedule& schedule) {
  MOTLEY_ASSIGN(const auto tasks, tasks_of(schedule.ranks[self_.index()]));
  for (const GradientReducer::Task& task : tasks) {
    MOTLEY_TRY(reducer_->set_kept(what, whose, task));
  }
  return {};
}

bool GradientSync::runs(const AllreduceId& sum) const {
  return reducer_ != nullptr && reducer_->has(sum);
}

}  // namespace motley
