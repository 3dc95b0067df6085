// A bucket advances as soon as its messages have arrived. If this rank waited for its oldest bucket
// alone, a slow link would delay messages that other ranks wait for. There is no deadlock: every
// message of the bucket that is oldest over all ranks comes from a rank for which it is the oldest
// too, or which has finished it.
#include "pipeline/collectives/hierarchical_allreduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "comm/transport/comm_errors.h"

namespace motley {
namespace {

// The messages at the front that have the same range of values. REQUIRES: messages is not empty.
template <typename Message, typename ValuesOf>
std::span<Message> leading_same_range(std::span<Message> messages, ValuesOf values_of) {
  const ValueRange values = values_of(messages.front());
  const auto end = std::ranges::find_if(
      messages, [&](const Message& message) { return values_of(message) != values; });
  return messages.first(static_cast<std::size_t>(end - messages.begin()));
}

}  // namespace

Result<std::unique_ptr<HierarchicalAllreduce>> HierarchicalAllreduce::make(
    FrameLink& link,
    Rank self,
    const AllreduceId& id,
    const AllreducePlan& plan,
    SliceEncoder& encoder,
    const HierarchicalAllreduceOptions& options) {
  MOTLEY_CHECK(options.window > 0, "a window of {} buckets", options.window);
  if (plan.buckets().size() > kBucketsMax) {
    return Error{
        ErrorCode::kConfig,
        fmt::format("the all-reduce of {} has {} buckets", to_words(id), plan.buckets().size()),
        fmt::format("frames number at most {}", kBucketsMax), "cut the model into more stages"};
  }
  const std::size_t window =
      std::min(plan.buckets().size(), static_cast<std::size_t>(options.window));
  std::vector<BucketRole> roles;
  for (const ReduceBucket& bucket : plan.buckets()) roles.push_back(role_in(plan, bucket, self));
  // The channel borrows these roles: moving the vector keeps them at their addresses.
  MOTLEY_ASSIGN(auto channel, AllreduceChannel::make(self, plan, roles, encoder, window));
  return std::unique_ptr<HierarchicalAllreduce>(new HierarchicalAllreduce(
      link, self, id, plan, encoder,
      {.window = static_cast<int>(window), .stall_timeout = options.stall_timeout},
      std::move(roles), std::move(channel)));
}

HierarchicalAllreduce::HierarchicalAllreduce(FrameLink& link,
                                             Rank self,
                                             const AllreduceId& id,
                                             const AllreducePlan& plan,
                                             SliceEncoder& encoder,
                                             const HierarchicalAllreduceOptions& options,
                                             std::vector<BucketRole> roles,
                                             std::unique_ptr<AllreduceChannel> channel)
    : link_(link),
      id_(id),
      encoder_(encoder),
      stall_timeout_(options.stall_timeout),
      roles_(std::move(roles)),
      channel_(std::move(channel)),
      value_count_(plan.value_count()),
      machine_(plan.machine_of(self)),
      local_rank_(plan.local_rank_of(self)),
      has_owners_(plan.machines().size() > 2),
      actives_(static_cast<std::size_t>(options.window)) {}

std::vector<EncodedSlice> HierarchicalAllreduce::encoded_slices() const {
  std::vector<EncodedSlice> slices;
  for (const BucketRole& role : roles_) {
    for (const ReducePhase phase :
         {ReducePhase::kCrossReduceScatter, ReducePhase::kCrossAllGather}) {
      const auto& sends = role.sends[static_cast<std::size_t>(phase)];
      for (std::size_t i = 0; i < sends.size(); ++i) {
        if (i > 0 && sends[i].values == sends[i - 1].values) continue;
        slices.push_back({{phase, sends[i].values}, role.is_owners});
      }
    }
  }
  return slices;
}

Result<double> HierarchicalAllreduce::run(std::int64_t step, std::span<float> values) {
  ReadyWatermark watermark(notifier_);
  watermark.set(0);
  return run(step, values, watermark);
}

Result<double> HierarchicalAllreduce::run(std::int64_t step,
                                          std::span<float> values,
                                          const ReadyWatermark& watermark) {
  MOTLEY_CHECK(values.size() == value_count_, "{} values for a plan of {}", values.size(),
               value_count_);
  step_ = step;
  values_ = values;
  wait_s_ = 0;
  std::size_t oldest = 0;
  std::size_t next = 0;
  while (oldest < roles_.size()) {
    if (watermark.abandoned()) return abandoned();
    while (next < roles_.size() && next < oldest + actives_.size() &&
           roles_[next].values.first >= watermark.first()) {
      begin(next++);
    }
    if (next == oldest) {
      // A passed deadline is no error here: the compute thread has deadlines of its own and
      // abandons the watermark when one passes.
      (void)notifier_->wait(stall_timeout_.deadline());
      continue;
    }
    bool progressed = false;
    for (std::size_t bucket = oldest; bucket < next; ++bucket) {
      MOTLEY_ASSIGN(const bool advanced, advance(slot(bucket)));
      progressed = progressed || advanced;
    }
    if (slot(oldest).is_done()) {
      ++oldest;
    } else if (!progressed) {
      MOTLEY_TRY(wait_for_any(slot(oldest)));
    }
  }
  if (watermark.abandoned()) return abandoned();
  // At the end of the first run, not before it: no rank ends it before all ranks have begun it.
  if (!channel_->has_agreed()) {
    MOTLEY_TRY(channel_->share_memory(link_, id_, step_, stall_timeout_));
    if (channel_->publishes_any()) buffers_ = {};  // most were for messages that are empty now
  }
  return wait_s_;
}

Error HierarchicalAllreduce::abandoned() const {
  return {ErrorCode::kInternal, fmt::format("the all-reduce of {} was cancelled", to_words(id_)),
          "the step ended early", "see the error that ended it"};
}

void HierarchicalAllreduce::begin(std::size_t bucket) {
  ActiveBucket& active = slot(bucket);
  active.bucket = bucket;
  active.phase = 0;
  for (std::size_t p = 0; p < kReducePhases; ++p) {
    const auto phase = static_cast<ReducePhase>(p);
    active.incoming[p].clear();
    for (const ExpectedMessage& expected : roles_[bucket].receives[p]) {
      Buffer buffer = buffers_.take(channel_->bytes_max(expected.message));
      active.incoming[p].push_back(
          {&expected,
           link_.recv(expected.message.from, frame_of(id_, bucket, phase, step_), std::move(buffer),
                      channel_->published_bytes(expected.message)),
           {}});
      active.incoming[p].back().frame.notify_when_done(notifier_);
    }
  }
  send_phase(active);
}

// Advances the bucket as far as possible without waiting. Returns whether it made progress.
Result<bool> HierarchicalAllreduce::advance(ActiveBucket& active) {
  bool progressed = false;
  while (active.phase < kReducePhases && active.all_received()) {
    for (Incoming& incoming : active.incoming[active.phase]) {
      MOTLEY_TRY(finish_receive(active, incoming));
    }
    MOTLEY_TRY(end_phase(active));
    if (++active.phase < kReducePhases) send_phase(active);
    progressed = true;
  }
  for (Outgoing& outgoing : active.outgoing) {
    if (!outgoing.pending.valid() || !outgoing.pending.done()) continue;
    MOTLEY_TRY(finish_send(active, outgoing));
    progressed = true;
  }
  std::erase_if(active.outgoing, [](const Outgoing& o) { return !o.pending.valid(); });
  return progressed;
}

// Waits until any message in flight completes. An error names the oldest bucket: it is the one that
// holds up all others.
Result<void> HierarchicalAllreduce::wait_for_any(const ActiveBucket& oldest) {
  const double start_s = now_s();
  const bool notified = notifier_->wait(stall_timeout_.deadline());
  wait_s_ += now_s() - start_s;
  if (notified) return {};
  return with_context(
      nothing_came(fmt::format("rank {}", oldest.awaited_rank().value), stall_timeout_.timeout_s()),
      context_of(oldest));
}

Result<void> HierarchicalAllreduce::finish_receive(const ActiveBucket& active, Incoming& incoming) {
  if (!incoming.frame.valid()) return {};
  auto buffer = incoming.frame.wait(stall_timeout_.deadline());
  if (!buffer.ok()) return with_context(std::move(buffer).error(), context_of(active));
  incoming.buffer = std::move(buffer).value();
  return {};
}

Result<void> HierarchicalAllreduce::finish_send(const ActiveBucket& active, Outgoing& outgoing) {
  auto buffer = outgoing.pending.wait(
      stall_timeout_.deadline(), fmt::format("rank {} to receive a message", outgoing.to.value));
  if (!buffer.ok()) return with_context(std::move(buffer).error(), context_of(active));
  buffers_.give(std::move(buffer).value());
  return {};
}

// Adds up or decodes the messages of the phase. REQUIRES: active.all_received().
Result<void> HierarchicalAllreduce::end_phase(ActiveBucket& active) {
  const auto phase = static_cast<ReducePhase>(active.phase);
  std::span<Incoming> rest(active.incoming[active.phase]);
  while (!rest.empty()) {
    const ValueRange range = rest.front().expected->message.values;
    const auto same_range =
        leading_same_range(rest, [](const Incoming& i) { return i.expected->message.values; });
    for (const Incoming& incoming : same_range) {
      received_.push_back({incoming.expected, std::as_const(incoming.buffer).payload()});
    }
    if (phase == ReducePhase::kCrossReduceScatter && has_owners_) {
      encoder_.begin_reduction({ReducePhase::kCrossAllGather, range, step_}, at(range));
    }
    const auto fits = is_added(phase)
                          ? channel_->add(active.bucket, received_,
                                          is_inside(phase) ? local_rank_ : machine_, at(range))
                          : channel_->decode(active.bucket, received_.front(), at(range));
    if (!fits.ok()) {
      return with_context(fits.error(),
                          fmt::format("{}, from rank {}", context_of(active),
                                      same_range.front().expected->message.from.value));
    }
    received_.clear();
    for (Incoming& incoming : same_range) buffers_.give(std::move(incoming.buffer));
    rest = rest.subspan(same_range.size());
  }
  return {};
}

void HierarchicalAllreduce::send_phase(ActiveBucket& active) {
  std::span<const ReduceMessage> rest(roles_[active.bucket].sends[active.phase]);
  while (!rest.empty()) {
    const auto same_range =
        leading_same_range(rest, [](const ReduceMessage& m) { return m.values; });
    send_same_range(active, same_range);
    rest = rest.subspan(same_range.size());
  }
}

// Sends messages of the same values, which are published or encoded once.
void HierarchicalAllreduce::send_same_range(ActiveBucket& active,
                                            std::span<const ReduceMessage> messages) {
  const auto phase = static_cast<ReducePhase>(active.phase);
  const auto send = [&](const ReduceMessage& message, Buffer buffer) {
    active.outgoing.push_back({link_.send(message.to, frame_of(id_, active.bucket, phase, step_),
                                          std::move(buffer), channel_->published_bytes(message)),
                               message.to});
    active.outgoing.back().pending.notify_when_done(notifier_);
  };
  auto encoded_left = std::ranges::count_if(
      messages, [&](const ReduceMessage& message) { return !channel_->is_published(message); });
  bool has_published = false;
  std::optional<Buffer> encoded;  // all but the last message get a copy
  for (const ReduceMessage& message : messages) {
    if (channel_->is_published(message)) {
      if (!has_published) channel_->publish(active.bucket, message, at(message.values));
      has_published = true;
      send(message, buffers_.take(0));
    } else {
      if (!encoded) encoded = encode(message);
      send(message, --encoded_left == 0 ? std::move(*encoded) : buffers_.copy_of(*encoded));
    }
  }
}

Buffer HierarchicalAllreduce::encode(const ReduceMessage& message) {
  Buffer buffer = buffers_.take(channel_->bytes_max(message));
  buffer.set_payload_bytes(
      channel_->encode(message, step_, at(message.values), buffer.payload_space()));
  return buffer;
}

ActiveBucket& HierarchicalAllreduce::slot(std::size_t bucket) {
  return actives_[bucket % actives_.size()];
}

std::span<float> HierarchicalAllreduce::at(ValueRange range) const {
  return values_.subspan(range.first, range.count);
}

std::string HierarchicalAllreduce::context_of(const ActiveBucket& active) const {
  return fmt::format("all-reduce of {}, bucket {} of {}, {}", to_words(id_), active.bucket + 1,
                     roles_.size(), active.phase_text());
}

}  // namespace motley
