#include "pipeline/execute/executor.h"

#include <utility>

#include "base/clock.h"
#include "compression/codec_chain.h"

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
  MOTLEY_ASSIGN(auto sums, GradientSums::make(self, plan, link, stage.gradients, options.gradients,
                                              options.patience));
  return std::unique_ptr<Executor>(
      new Executor(self, link, stage, activity, options, std::move(codecs), std::move(sums)));
}

Executor::Executor(Rank self,
                   FrameLink& link,
                   const StageParts& stage,
                   Activity& activity,
                   ExecutorOptions options,
                   std::vector<std::unique_ptr<const Codec>> codecs,
                   std::unique_ptr<GradientSums> sums)
    : self_(self),
      link_(link),
      compute_(stage.compute),
      votes_(stage.votes),
      activity_(activity),
      options_(options),
      exchange_(
          self, link, stage.compute, std::move(codecs), options.patience, options.codecs_beside),
      sums_(std::move(sums)) {}

Result<RunTimes> Executor::run(const Schedule& schedule, const BatchPosition& position) {
  position_ = position;
  rank_count_ = static_cast<int>(schedule.ranks.size());
  times_ = {};
  sum_and_vote_wait_s_ = 0;
  const double start_s = now_s();
  exchange_.begin(schedule, position);
  compute_.begin(position);
  MOTLEY_TRY(sums_->begin(schedule, position.step));
  const std::vector<Action>& actions = schedule.ranks[self_.index()];
  for (std::size_t at = 0; at < actions.size(); ++at) {
    const Action& action = actions[at];
    activity_.set(position.step, action);
    const double action_start_s = now_s();
    const double waited_before_s = wait_s();
    MOTLEY_TRY(execute(action, at));
    const double end_s = now_s();
    const double waited_s = wait_s() - waited_before_s;
    times_.compute_s += end_s - action_start_s - waited_s;
    if (waited_s > 0) add_span("wait", action, action_start_s, action_start_s + waited_s);
    add_span("compute", action, action_start_s + waited_s, end_s);
  }
  MOTLEY_TRY(exchange_.finish());
  activity_.clear(position.step);
  times_.wait_s = wait_s();
  times_.codec_s = exchange_.times().codec_s;
  times_.total_s = now_s() - start_s;
  return times_;
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
      return finish_sum(action);
    case ActionKind::kVote:
      return vote();
    case ActionKind::kStep:
      step();
      return {};
  }
  return {};
}

Result<void> Executor::forward(const Action& action) {
  MOTLEY_TRY(exchange_.receive(action));
  exchange_.take(action, compute_.forward(action.chunk, action.micro));
  return {};
}

Result<void> Executor::backward(const Action& action, std::size_t at) {
  MOTLEY_TRY(exchange_.receive(action));
  OwnedFloats gradient = compute_.backward(action.chunk, action.micro, part_of(action.kind),
                                           sums_->on_final(action, at));
  sums_->after(action, at);
  exchange_.take(action, std::move(gradient));
  return {};
}

Result<void> Executor::finish_sum(const Action& action) {
  const double start_s = now_s();
  MOTLEY_ASSIGN(const GradientReducer::Span span, sums_->wait(action));
  sum_and_vote_wait_s_ += now_s() - start_s;
  add_span("sum", action, span.start_s, span.end_s);
  return {};
}

Result<void> Executor::vote() {
  const double start_s = now_s();
  const std::vector<std::byte> mine = votes_.vote(position_);
  MOTLEY_ASSIGN(const auto votes,
                all_gather_small(link_, self_, rank_count_, position_.step, mine,
                                 votes_.vote_bytes_max(), options_.patience.deadline()));
  sum_and_vote_wait_s_ += now_s() - start_s;
  return votes_.count_votes(votes);
}

void Executor::step() {
  const double start_s = now_s();
  const bool updated = votes_.step();
  times_.optimizer_s += now_s() - start_s;
  // Whatever made the step worthless may be in what its messages left out.
  if (!updated) sums_->forget();
}

bool Executor::add_residuals() {
  return sums_->add_residuals();
}

void Executor::record(TraceRecorder* recorder) {
  if (recorder != nullptr && recorder_ == nullptr) record_start_s_ = now_s();
  recorder_ = recorder;
}

void Executor::add_span(const char* lane, const Action& action, double start_s, double end_s) {
  constexpr double kShortest_s = 1e-6;  // posts and lookups would only blur the picture
  if (recorder_ == nullptr || end_s - start_s < kShortest_s) return;
  recorder_->add({self_, lane, to_text(action), start_s - record_start_s_, end_s - start_s,
                  static_cast<int>(position_.step)});
}

}  // namespace motley
