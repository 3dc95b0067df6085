#include "pipeline/execute/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "base/check.h"
#include "compression/codec_chain.h"

namespace motley {
namespace {

constexpr SumId kTiedSum{FrameKind::kTiedGradient, {}};

}  // namespace

Result<std::unique_ptr<Executor>> Executor::make(Rank self,
                                                 const Plan& plan,
                                                 FrameLink& link,
                                                 const StageParts& stage,
                                                 Activity& activity,
                                                 ExecutorOptions options) {
  std::unique_ptr<Executor> executor(new Executor(self, link, stage, activity, options));
  const auto ranks_of = [](const ChunkPlan& chunk) {
    std::vector<Rank> ranks;
    for (const Replica& replica : chunk.replicas) ranks.push_back(replica.rank);
    return ranks;
  };
  for (const ChunkPlan& chunk : plan.chunks) {
    MOTLEY_ASSIGN(auto codec, make_codec(chunk.codec));
    executor->codecs_.push_back(std::move(codec));
    executor->holders_.push_back(sum_group(plan, ranks_of(chunk)));
  }
  std::vector<Rank> ends = ranks_of(plan.chunks.front());
  std::ranges::copy(ranks_of(plan.chunks.back()), std::back_inserter(ends));
  executor->end_holders_ = sum_group(plan, distinct_ranks(ends));
  // Refused now rather than in the first step.
  MOTLEY_TRY(FeedbackEncoder::make(options.gradients));
  return executor;
}

Executor::Executor(Rank self,
                   FrameLink& link,
                   const StageParts& stage,
                   Activity& activity,
                   ExecutorOptions options)
    : self_(self),
      link_(link),
      compute_(stage.compute),
      gradients_(stage.gradients),
      votes_(stage.votes),
      activity_(activity),
      options_(options),
      sender_(link, options.patience, options.codecs_beside),
      receiver_(options.codecs_beside) {}

Result<RunTimes> Executor::run(const Schedule& schedule, const BatchPosition& position) {
  schedule_ = &schedule;
  position_ = position;
  times_ = {};
  const double start_s = now_s();
  compute_.begin(position);
  MOTLEY_TRY(begin_sums());
  for (const Action& action : schedule.ranks[self_.index()]) {
    activity_.set(position.step, action);
    const double action_start_s = now_s();
    action_wait_s_ = 0;
    MOTLEY_TRY(execute(action));
    const double end_s = now_s();
    times_.wait_s += action_wait_s_;
    times_.compute_s += end_s - action_start_s - action_wait_s_;
    if (action_wait_s_ > 0) {
      add_span("wait", action, action_start_s, action_start_s + action_wait_s_);
    }
    add_span("compute", action, action_start_s + action_wait_s_, end_s);
  }
  MOTLEY_TRY(sender_.finish());
  MOTLEY_CHECK(receiver_.count() == 0, "{} receives were posted and not used", receiver_.count());
  activity_.clear(position.step);
  times_.total_s = now_s() - start_s;
  return times_;
}

// All sums of the step, in the order of the schedule, which is the same on all ranks.
Result<void> Executor::begin_sums() {
  std::vector<GradientReducer::Task> tasks;
  last_changes_.clear();
  last_uses_.clear();
  for (const Action& action : schedule_->ranks[self_.index()]) {
    const ChunkId chunk = action.chunk;
    note_last(action);
    if (action.kind == ActionKind::kReduce) {
      tasks.push_back(
          {{FrameKind::kReplicaSum, chunk}, holders_[chunk.index()], gradients_.gradients(chunk)});
    } else if (action.kind == ActionKind::kReduceTied) {
      tasks.push_back({kTiedSum, end_holders_, gradients_.tied_gradient()});
    }
  }
  if (tasks.empty()) return {};
  if (reducer_ == nullptr) {
    MOTLEY_ASSIGN(reducer_,
                  GradientReducer::make(link_, self_, options_.gradients, options_.patience));
  }
  return reducer_->begin(position_.step, tasks);
}

// What is noted last stays.
void Executor::note_last(const Action& action) {
  const bool whole = action.kind == ActionKind::kBackward;
  const bool adds_input = whole || action.kind == ActionKind::kBackwardInput;
  const bool adds_weights = whole || action.kind == ActionKind::kBackwardWeight;
  if (adds_weights) last_changes_[action.chunk] = action;
  if (adds_input && action.chunk == ChunkId{0}) last_uses_[TiedUse::kFirstChunk] = action;
  if (adds_weights && action.chunk == last_chunk()) last_uses_[TiedUse::kLastChunk] = action;
}

Result<void> Executor::execute(const Action& action) {
  const auto [kind, chunk, micro] = action;
  switch (kind) {
    case ActionKind::kLoad:
      return load(action);
    case ActionKind::kSendTargets:
      return send_targets(action);
    case ActionKind::kRecvTargets:
      post_targets(action);
      return {};
    case ActionKind::kRecvActivation: {
      const ChunkId from{chunk.value - 1};
      post_floats(action, schedule_->owner(from, micro),
                  {FrameKind::kActivation, from, micro, position_.step}, *codecs_[from.index()],
                  compute_.boundary_floats(from), [this, chunk, micro] {
                    return compute_.room({BoundaryValue::kInput, chunk, micro});
                  });
      return {};
    }
    case ActionKind::kRecvGradient: {
      const ChunkId from{chunk.value + 1};
      post_floats(action, schedule_->owner(from, micro),
                  {FrameKind::kGradient, from, micro, position_.step}, *codecs_[chunk.index()],
                  compute_.boundary_floats(chunk), [this, chunk, micro] {
                    return compute_.room({BoundaryValue::kOutputGradient, chunk, micro});
                  });
      return {};
    }
    case ActionKind::kForward:
      return forward(action);
    case ActionKind::kBackward:
    case ActionKind::kBackwardInput:
      return backward(action);
    case ActionKind::kBackwardWeight:
      backward_weight(action);
      return {};
    case ActionKind::kSendActivation:
      return send_floats(schedule_->owner(ChunkId{chunk.value + 1}, micro),
                         {FrameKind::kActivation, chunk, micro, position_.step},
                         *codecs_[chunk.index()], take_produced(action));
    case ActionKind::kSendGradient:
      return send_floats(schedule_->owner(ChunkId{chunk.value - 1}, micro),
                         {FrameKind::kGradient, chunk, micro, position_.step},
                         *codecs_[chunk.index() - 1], take_produced(action));
    case ActionKind::kReduce:
      return finish_sum(action, {FrameKind::kReplicaSum, chunk});
    case ActionKind::kReduceTied:
      return finish_sum(action, kTiedSum);
    case ActionKind::kVote:
      return vote();
    case ActionKind::kStep:
      step();
      return {};
  }
  return {};
}

Result<void> Executor::load(const Action& action) {
  loaded_targets_ = compute_.load(action.micro);
  return {};
}

Result<void> Executor::send_targets(const Action& action) {
  // A copy: the next load may overwrite them before they are sent.
  std::vector<std::int32_t> targets(loaded_targets_.begin(), loaded_targets_.end());
  const std::size_t bytes = loaded_targets_.size_bytes();
  return send({schedule_->owner(last_chunk(), action.micro),
               {FrameKind::kTargets, ChunkId{0}, action.micro, position_.step},
               bytes,
               [targets = std::move(targets)](std::span<std::byte> room) {
                 std::ranges::copy(std::as_bytes(std::span(targets)), room.begin());
                 return room.size();
               }});
}

void Executor::post_targets(const Action& action) {
  const std::span<std::int32_t> targets = compute_.targets_room(action.micro);
  post(action, schedule_->owner(ChunkId{0}, action.micro),
       {FrameKind::kTargets, ChunkId{0}, action.micro, position_.step}, targets.size_bytes(),
       [targets, micro = action.micro](std::span<const std::byte> payload) -> Result<void> {
         if (payload.size() != targets.size_bytes()) {
           return Error{ErrorCode::kCorrupt,
                        fmt::format("targets of micro-batch {} have {} bytes instead of {}",
                                    micro.value, payload.size(), targets.size_bytes()),
                        "the peer runs another configuration",
                        "start all stages from one launcher"};
         }
         std::memcpy(targets.data(), payload.data(), payload.size());
         return {};
       });
}

Result<void> Executor::forward(const Action& action) {
  const auto [kind, chunk, micro] = action;
  const bool is_last = chunk == last_chunk();
  if (chunk.value > 0 && schedule_->owner(ChunkId{chunk.value - 1}, micro) != self_) {
    MOTLEY_TRY(receive({ActionKind::kRecvActivation, chunk, micro}));
  }
  if (is_last && schedule_->owner(ChunkId{0}, micro) != self_) {
    MOTLEY_TRY(receive({ActionKind::kRecvTargets, ChunkId{}, micro}));
  }
  produced_ = {action, compute_.forward(chunk, micro)};
  const ChunkId next{chunk.value + 1};
  if (!is_last && schedule_->owner(next, micro) == self_) {
    compute_.hand({BoundaryValue::kInput, next, micro}, std::move(produced_.floats));
  }
  return {};
}

Result<void> Executor::backward(const Action& action) {
  const auto [kind, chunk, micro] = action;
  if (chunk != last_chunk() && schedule_->owner(ChunkId{chunk.value + 1}, micro) != self_) {
    MOTLEY_TRY(receive({ActionKind::kRecvGradient, chunk, micro}));
  }
  const bool is_final = is_last_change(action);
  const auto part = kind == ActionKind::kBackward ? BackwardPart::kWhole : BackwardPart::kInput;
  produced_ = {action, compute_.backward(chunk, micro, part, is_final ? on_final(chunk) : nullptr)};
  if (is_final) end_final(chunk);
  end_tied(action);
  const ChunkId previous{chunk.value - 1};
  if (chunk.value > 0 && schedule_->owner(previous, micro) == self_) {
    compute_.hand({BoundaryValue::kOutputGradient, previous, micro}, std::move(produced_.floats));
  }
  return {};
}

void Executor::backward_weight(const Action& action) {
  const bool is_final = is_last_change(action);
  (void)compute_.backward(action.chunk, action.micro, BackwardPart::kWeights,
                          is_final ? on_final(action.chunk) : nullptr);
  if (is_final) end_final(action.chunk);
  end_tied(action);
}

// Whether no later action of the step changes the chunk's gradients; they may then be summed while
// this one runs.
bool Executor::is_last_change(const Action& action) const {
  const auto last = last_changes_.find(action.chunk);
  return last != last_changes_.end() && last->second == action;
}

// Empty where nobody sums the chunk's gradients.
StageCompute::OnFinal Executor::on_final(ChunkId chunk) {
  const SumId sum{FrameKind::kReplicaSum, chunk};
  if (reducer_ == nullptr || !reducer_->has(sum)) return nullptr;
  return [this, sum](std::size_t first) { reducer_->set_final(sum, first); };
}

void Executor::end_final(ChunkId chunk) {
  const SumId sum{FrameKind::kReplicaSum, chunk};
  if (reducer_ != nullptr && reducer_->has(sum)) reducer_->set_final(sum, 0);
  last_changes_.erase(chunk);
}

// After the action: whether it was the last that adds to the tied parameter's gradient.
void Executor::end_tied(const Action& action) {
  const auto is_done = [&](const auto& use) { return use.second == action; };
  if (std::erase_if(last_uses_, is_done) == 0 || !last_uses_.empty()) return;
  gradients_.end_tied_gradient();
  if (reducer_ != nullptr && reducer_->has(kTiedSum)) reducer_->set_final(kTiedSum, 0);
}

OwnedFloats Executor::take_produced(const Action& send) {
  const auto& [kind, chunk, micro] = produced_.action;
  const bool activation = kind == ActionKind::kForward;
  MOTLEY_CHECK(activation == (send.kind == ActionKind::kSendActivation) && chunk == send.chunk &&
                   micro == send.micro,
               "{} follows {}", to_text(send), to_text(produced_.action));
  return std::move(produced_.floats);
}

Result<void> Executor::finish_sum(const Action& action, const SumId& id) {
  const double start_s = now_s();
  MOTLEY_ASSIGN(const GradientReducer::Span span, reducer_->wait(id));
  action_wait_s_ += now_s() - start_s;
  add_span("sum", action, span.start_s, span.end_s);
  return {};
}

Result<void> Executor::vote() {
  const double start_s = now_s();
  const std::vector<std::byte> mine = votes_.vote(position_);
  MOTLEY_ASSIGN(
      const auto votes,
      all_gather_small(link_, self_, static_cast<int>(schedule_->ranks.size()), position_.step,
                       mine, votes_.vote_bytes_max(), options_.patience.deadline()));
  action_wait_s_ += now_s() - start_s;
  return votes_.count_votes(votes);
}

void Executor::step() {
  const double start_s = now_s();
  const bool updated = votes_.step();
  times_.optimizer_s += now_s() - start_s;
  if (updated) return;
  // Whatever made the step worthless may be in what its messages left out.
  if (reducer_ != nullptr) reducer_->forget();
}

bool Executor::add_residuals() {
  const bool owes = options_.gradients.error_feedback && options_.gradients.chain != "none";
  if (!owes || reducer_ == nullptr) return false;
  for (ChunkId chunk{0}; chunk <= last_chunk(); ++chunk.value) {
    const SumId sum{FrameKind::kReplicaSum, chunk};
    if (reducer_->has(sum)) reducer_->add_residuals(sum, gradients_.gradients(chunk));
  }
  if (reducer_->has(kTiedSum)) reducer_->add_residuals(kTiedSum, gradients_.tied_gradient());
  return true;
}

void Executor::post(const Action& action,
                    Rank from,
                    const FrameId& id,
                    std::size_t bytes_max,
                    FrameReceiver::Read read) {
  receiver_.expect(action, link_.recv(from, id, buffers_.take(bytes_max)), std::move(read));
}

void Executor::post_floats(const Action& action,
                           Rank from,
                           const FrameId& id,
                           const Codec& codec,
                           std::size_t count,
                           std::function<std::span<float>()> room) {
  // Only the compute thread may ask for it.
  if (options_.codecs_beside) room = [values = room()] { return values; };
  post(action, from, id, codec.bytes_max(count),
       [&codec, room = std::move(room)](std::span<const std::byte> payload) {
         return codec.decode(payload, room());
       });
}

Result<void> Executor::receive(const Action& posted) {
  MOTLEY_ASSIGN(FrameReceiver::Received received,
                receiver_.wait(posted, options_.patience.deadline()));
  action_wait_s_ += received.wait_s;
  times_.codec_s += received.read_s;
  buffers_.give(std::move(received.buffer));
  return {};
}

Result<void> Executor::send_floats(Rank to,
                                   const FrameId& id,
                                   const Codec& codec,
                                   OwnedFloats floats) {
  const std::size_t bytes_max = codec.bytes_max(floats.values.size());
  return send({to, id, bytes_max, [&codec, floats = std::move(floats)](std::span<std::byte> room) {
                 return codec.encode(floats.values, room);
               }});
}

Result<void> Executor::send(FrameSender::Frame frame) {
  const double start_s = now_s();
  MOTLEY_TRY(sender_.send(std::move(frame)));
  times_.codec_s += now_s() - start_s;
  return {};
}

ChunkId Executor::last_chunk() const {
  return ChunkId{schedule_->chunk_count() - 1};
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
