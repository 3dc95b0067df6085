#include "pipeline/execute/executor.h"

#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "compression/make_codec.h"

namespace motley {
namespace {

BackwardPart part_of(ActionKind backward) {
  if (backward == ActionKind::kBackwardInput) return BackwardPart::kInput;
  if (backward == ActionKind::kBackwardWeight) return BackwardPart::kWeights;
  return BackwardPart::kWhole;
}

}  // namespace

Result<std::unique_ptr<Executor>> Executor::make(Rank self,
                                                 const Plan& plan,
                                                 FrameLink& link,
                                                 const StageParts& stage,
                                                 Activity& activity,
                                                 ExecutorOptions options) {
  std::vector<std::unique_ptr<const Codec>> codecs;
  for (const ChunkPlan& chunk : plan.chunks) {
    MOTLEY_ASSIGN(auto codec, make_codec(chunk.codec));
    codecs.push_back(std::move(codec));
  }
  MOTLEY_ASSIGN(auto sync, GradientSync::make(self, plan, link, stage.gradients, options.gradients,
                                              options.stall_timeout, options.local_clip));
  std::unique_ptr<Executor> executor(
      new Executor(self, link, stage, activity, options, std::move(codecs), std::move(sync)));
  if (plan.rounds) {
    MOTLEY_CHECK(stage.rounds != nullptr, "a plan with rounds, without their state");
    // Islands are made of fast links.
    MOTLEY_ASSIGN(executor->island_sync_,
                  GradientSync::make(self, plan, link, stage.gradients, CompressorOptions{},
                                     options.stall_timeout, 0, /*within_island=*/true));
    MOTLEY_ASSIGN(executor->round_sync_,
                  RoundSync::make(self, plan, link, *stage.rounds, options.stall_timeout));
  }
  return executor;
}

Executor::Executor(Rank self,
                   FrameLink& link,
                   const StageParts& stage,
                   Activity& activity,
                   ExecutorOptions options,
                   std::vector<std::unique_ptr<const Codec>> codecs,
                   std::unique_ptr<GradientSync> sync)
    : self_(self),
      link_(link),
      compute_(stage.compute),
      votes_(stage.votes),
      activity_(activity),
      options_(options),
      exchange_(self,
                link,
                stage.compute,
                std::move(codecs),
                options.stall_timeout,
                options.overlaps_codecs),
      gradient_sync_(std::move(sync)),
      host_clock_({options_.cpu_share, options_.threads}),
      times_(self, stage.clock == nullptr ? host_clock_ : *stage.clock) {}

Result<StepTimes> Executor::run(const Schedule& schedule, const BatchPosition& position) {
  position_ = position;
  rank_count_ = static_cast<int>(schedule.ranks.size());
  exchange_.begin(schedule, position);
  compute_.begin(position);
  sync_ = &sync_of(schedule);
  if (!schedule.islands.empty()) round_sync_->begin_round(position.step);
  MOTLEY_TRY(sync_->begin(schedule, position.step));
  times_.begin(position);
  const Result<void> ran = run_all(schedule.ranks[self_.index()]);
  // A receive may fail because this rank's own send failed; that error is the cause.
  if (!ran.ok()) return exchange_.send_failure().value_or(ran.error());
  {
    const Activity::Waiting waiting(activity_);
    MOTLEY_TRY(exchange_.finish());
  }
  activity_.clear(position.step);
  StepTimes times = times_.take_totals(position.training);
  times.codec_s = exchange_.times().codec_s;
  return times;
}

Result<void> Executor::run_all(const std::vector<Action>& actions) {
  for (std::size_t at = 0; at < actions.size(); ++at) {
    activity_.set(position_.step, actions[at]);
    MOTLEY_TRY(execute(actions[at], at));
    times_.end(actions[at]);
  }
  return {};
}

Result<void> Executor::execute(const Action& action, std::size_t at) {
  switch (action.kind) {
    case ActionKind::kLoad:
      exchange_.take_targets(action, compute_.load(action.micro));
      return {};
    case ActionKind::kSendTargets:
    case ActionKind::kSendActivation:
    case ActionKind::kSendGradient:
      return exchange_.send(action);
    case ActionKind::kRecvTargets:
    case ActionKind::kRecvActivation:
    case ActionKind::kRecvGradient:
      exchange_.post(action);
      return {};
    case ActionKind::kForward:
      return forward(action);
    case ActionKind::kBackward:
    case ActionKind::kBackwardInput:
    case ActionKind::kBackwardWeight:
      return backward(action, at);
    case ActionKind::kReduce:
    case ActionKind::kReduceTied:
      return finish_allreduce(action);
    case ActionKind::kVote:
      return vote(action);
    case ActionKind::kStep:
      step();
      return {};
    case ActionKind::kOffer:
      return round_sync_->offer(position_.step);
    case ActionKind::kAdopt:
      return adopt(action);
  }
  return {};
}

Result<void> Executor::receive(const Action& action) {
  const double waited_before_s = exchange_.times().wait_s;
  {
    const Activity::Waiting waiting(activity_);
    MOTLEY_TRY(exchange_.receive(action));
  }
  const double waited_s = exchange_.times().wait_s - waited_before_s;
  if (waited_s > 0) times_.end_part(action, waited_s);
  return {};
}

Result<void> Executor::forward(const Action& action) {
  MOTLEY_TRY(receive(action));
  exchange_.take(action, compute_.forward(action.chunk, action.micro));
  return {};
}

Result<void> Executor::backward(const Action& action, std::size_t at) {
  MOTLEY_TRY(receive(action));
  OwnedBoundary gradient = compute_.backward(action.chunk, action.micro, part_of(action.kind),
                                             sync_->on_ready(action, at));
  sync_->after(action, at);
  exchange_.take(action, std::move(gradient));
  return {};
}

Result<void> Executor::finish_allreduce(const Action& action) {
  const Activity::Waiting waiting(activity_);
  const double start_s = now_s();
  MOTLEY_ASSIGN(const GradientReducer::Span span, sync_->wait(action));
  times_.end_part(action, now_s() - start_s);
  times_.add_span("sum", action, span.start_s, span.end_s);
  return {};
}

Result<void> Executor::vote(const Action& action) {
  const std::vector<std::byte> mine = votes_.vote(position_);
  times_.end_part(action, 0);
  const Activity::Waiting waiting(activity_);
  const double start_s = now_s();
  MOTLEY_ASSIGN(const auto votes,
                all_gather_small(link_, self_, rank_count_, position_.step, mine,
                                 votes_.vote_bytes_max(), options_.stall_timeout.deadline()));
  times_.end_part(action, now_s() - start_s);
  return votes_.count_votes(votes);
}

void Executor::step() {
  sync_->end_step(votes_.step());
}

Result<void> Executor::adopt(const Action& action) {
  const Activity::Waiting waiting(activity_);
  const double start_s = now_s();
  MOTLEY_ASSIGN(const GradientReducer::Span span, round_sync_->adopt());
  times_.end_part(action, now_s() - start_s);
  if (span.end_s > 0) times_.add_span("sum", action, span.start_s, span.end_s);
  return {};
}

bool Executor::add_feedback(FeedbackKind what) {
  return gradient_sync_->add_feedback(what);
}

Result<void> Executor::set_feedback(FeedbackKind what,
                                    FeedbackScope scope,
                                    const Schedule& schedule) {
  return gradient_sync_->set_feedback(what, scope, schedule);
}

void Executor::add_round_feedback() {
  round_sync_->add_feedback();
}

Result<void> Executor::set_round_feedback(FeedbackScope scope) {
  return round_sync_->set_feedback(scope);
}

}  // namespace motley
