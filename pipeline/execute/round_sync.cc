#include "pipeline/execute/round_sync.h"

#include <algorithm>
#include <span>
#include <utility>

#include "plan/gradient_group.h"

namespace motley {

Result<std::unique_ptr<RoundSync>> RoundSync::make(
    Rank self, const Plan& plan, FrameLink& link, StageRounds& rounds, StallTimeout stall_timeout) {
  MOTLEY_ASSIGN(auto reducer,
                GradientReducer::make(link, self, {.chain = plan.rounds->codec}, stall_timeout));
  std::unique_ptr<GradientReducer> exact;
  if (plan.rounds->start_island >= 0) {
    MOTLEY_ASSIGN(exact, GradientReducer::make(link, self, {}, stall_timeout));
  }
  std::unique_ptr<RoundSync> sync(
      new RoundSync(rounds, plan.rounds->start_steps, std::move(reducer), std::move(exact)));
  for (ChunkId chunk{plan.chunk_count() - 1}; chunk.value >= 0; --chunk.value) {
    if (!plan.chunks[chunk.index()].is_on(self)) continue;
    sync->groups_.push_back({{FrameKind::kPseudoGradient, chunk},
                             process_group(plan, replica_ranks(plan.chunks[chunk.index()]))});
  }
  const std::vector<Rank> tied = tied_parameter_ranks(plan);
  if (std::ranges::binary_search(tied, self) && !rounds.tied_pseudo_gradient().empty()) {
    sync->groups_.push_back({{FrameKind::kTiedPseudoGradient, {}}, process_group(plan, tied)});
  }
  return sync;
}

std::vector<GradientReducer::Task> RoundSync::tasks() {
  std::vector<GradientReducer::Task> tasks;
  for (const Group& group : groups_) {
    const bool is_tied = is_allreduce_of_tied(group.id.kind);
    tasks.push_back(
        {group.id, group.members,
         is_tied ? rounds_.tied_pseudo_gradient() : rounds_.pseudo_gradients(group.id.chunk)});
  }
  return tasks;
}

Result<void> RoundSync::begin(GradientReducer& reducer) {
  MOTLEY_TRY(reducer.begin(step_, tasks()));
  for (const Group& group : groups_) reducer.set_ready(group.id, 0);
  return {};
}

Result<GradientReducer::Span> RoundSync::wait(GradientReducer& reducer) {
  GradientReducer::Span whole;
  for (const Group& group : groups_) {
    MOTLEY_ASSIGN(const GradientReducer::Span span, reducer.wait(group.id));
    whole = {whole.end_s == 0 ? span.start_s : whole.start_s, span.end_s};
  }
  reducer.end_step(StepEffect::kUpdated);
  return whole;
}

Result<void> RoundSync::offer(std::int64_t step) {
  step_ = step;
  is_offered_ = true;
  if (step_ <= start_steps_) return {};
  rounds_.offer();
  return begin(*reducer_);
}

Result<GradientReducer::Span> RoundSync::adopt() {
  if (!std::exchange(is_offered_, false)) return GradientReducer::Span{};
  if (step_ <= start_steps_) return adopt_start();
  MOTLEY_ASSIGN(const GradientReducer::Span span, wait(*reducer_));
  rounds_.adopt();
  return span;
}

Result<GradientReducer::Span> RoundSync::adopt_start() {
  GradientReducer::Span whole;
  for (int array = 0; array < rounds_.start_arrays(); ++array) {
    rounds_.offer_start(array);
    MOTLEY_TRY(begin(*exact_));
    MOTLEY_ASSIGN(const GradientReducer::Span span, wait(*exact_));
    rounds_.adopt_start(array);
    whole = {whole.end_s == 0 ? span.start_s : whole.start_s, span.end_s};
  }
  return whole;
}

void RoundSync::add_feedback() {
  for (const GradientReducer::Task& task : tasks()) {
    reducer_->add_feedback(FeedbackKind::kResidual, task.id, task.values);
  }
}

Result<void> RoundSync::set_feedback(FeedbackScope scope) {
  for (const GradientReducer::Task& task : tasks()) {
    MOTLEY_TRY(reducer_->set_feedback(FeedbackKind::kResidual, scope, task));
  }
  return {};
}

}  // namespace motley
