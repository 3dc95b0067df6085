// Whatever comes moves its bucket on at once: were the oldest bucket waited for alone, a slow link
// would keep this rank from sending what others wait for. It cannot hang: of the oldest bucket of
// all ranks every message is sent by a rank for which it is the oldest too, or which is done with
// it.
#include "pipeline/reduce/hierarchical_allreduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "comm/transport/comm_errors.h"

namespace motley {
namespace {

const char* to_words(ReducePhase phase) {
  switch (phase) {
    case ReducePhase::kLocalReduceScatter:
      return "reducing inside a machine";
    case ReducePhase::kCrossReduceScatter:
      return "reducing over the machines";
    case ReducePhase::kCrossAllGather:
      return "gathering the sums of the machines";
    case ReducePhase::kLocalAllGather:
      return "gathering the sums inside a machine";
  }
  return "ending";
}

// Of messages those at the front that are of the same values. REQUIRES: there is one.
template <typename Message, typename ValuesOf>
std::span<Message> leading_alike(std::span<Message> messages, ValuesOf values_of) {
  const ValueRange values = values_of(messages.front());
  const auto end = std::ranges::find_if(
      messages, [&](const Message& message) { return values_of(message) != values; });
  return messages.first(static_cast<std::size_t>(end - messages.begin()));
}

}  // namespace

Result<std::unique_ptr<HierarchicalAllreduce>> HierarchicalAllreduce::make(
    FrameLink& link,
    Rank self,
    const AllreduceId& name,
    const AllreducePlan& plan,
    SliceEncoder& encoder,
    const HierarchicalSumOptions& options) {
  MOTLEY_CHECK(options.window > 0, "a window of {} buckets", options.window);
  if (plan.buckets().size() > kBucketsMax) {
    return Error{ErrorCode::kConfig,
                 fmt::format("the sum of {} has {} buckets", to_words(name), plan.buckets().size()),
                 fmt::format("frames number at most {}", kBucketsMax),
                 "cut the model into more stages"};
  }
  const std::size_t window =
      std::min(plan.buckets().size(), static_cast<std::size_t>(options.window));
  std::vector<BucketRole> roles;
  for (const ReduceBucket& bucket : plan.buckets()) roles.push_back(role_in(plan, bucket, self));
  // The wire goes on reading these roles: a vector that is moved leaves them where they lie.
  MOTLEY_ASSIGN(auto wire, AllreduceChannel::make(self, plan, roles, encoder, window));
  return std::unique_ptr<HierarchicalAllreduce>(
      new HierarchicalAllreduce(link, self, name, plan, encoder,
                                {.window = static_cast<int>(window), .patience = options.patience},
                                std::move(roles), std::move(wire)));
}

HierarchicalAllreduce::HierarchicalAllreduce(FrameLink& link,
                                             Rank self,
                                             const AllreduceId& name,
                                             const AllreducePlan& plan,
                                             SliceEncoder& encoder,
                                             const HierarchicalSumOptions& options,
                                             std::vector<BucketRole> roles,
                                             std::unique_ptr<AllreduceChannel> wire)
    : link_(link),
      name_(name),
      encoder_(encoder),
      patience_(options.patience),
      roles_(std::move(roles)),
      wire_(std::move(wire)),
      value_count_(plan.value_count()),
      machine_(plan.machine_of(self)),
      place_(plan.place_of(self)),
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
  ReadyWatermark mark(bell_);
  mark.set(0);
  return run(step, values, mark);
}

Result<double> HierarchicalAllreduce::run(std::int64_t step,
                                          std::span<float> values,
                                          const ReadyWatermark& mark) {
  MOTLEY_CHECK(values.size() == value_count_, "{} values for a plan of {}", values.size(),
               value_count_);
  step_ = step;
  values_ = values;
  wait_s_ = 0;
  std::size_t oldest = 0;
  std::size_t next = 0;
  while (oldest < roles_.size()) {
    if (mark.abandoned()) return abandoned();
    while (next < roles_.size() && next < oldest + actives_.size() && may_begin(next, mark)) {
      begin(next++);
    }
    if (next == oldest) {
      // The computing thread has deadlines of its own and abandons the mark when one passes.
      (void)bell_->wait(patience_.deadline());
      continue;
    }
    bool moved = false;
    for (std::size_t bucket = oldest; bucket < next; ++bucket) {
      MOTLEY_ASSIGN(const bool went_on, advance(slot(bucket)));
      moved = moved || went_on;
    }
    if (slot(oldest).is_done()) {
      ++oldest;
    } else if (!moved) {
      MOTLEY_TRY(wait_for_any(slot(oldest)));
    }
  }
  if (mark.abandoned()) return abandoned();
  // Here and not before the first run: nobody comes to its end before all have begun it.
  if (!wire_->has_agreed()) {
    MOTLEY_TRY(wire_->share_memory(link_, name_, step_, patience_));
    if (wire_->shows_any()) buffers_ = {};  // most of them were for what is no longer sent
  }
  return wait_s_;
}

bool HierarchicalAllreduce::may_begin(std::size_t bucket, const ReadyWatermark& mark) const {
  return roles_[bucket].values.first >= mark.first();
}

Error HierarchicalAllreduce::abandoned() const {
  return {ErrorCode::kInternal, fmt::format("summing {} was abandoned", to_words(name_)),
          "the step ended early", "see the error that ended it"};
}

void HierarchicalAllreduce::begin(std::size_t bucket) {
  Active& active = slot(bucket);
  active.bucket = bucket;
  active.phase = 0;
  for (std::size_t p = 0; p < kReducePhases; ++p) {
    const auto phase = static_cast<ReducePhase>(p);
    active.incoming[p].clear();
    for (const ExpectedMessage& expected : roles_[bucket].receives[p]) {
      Buffer room = buffers_.take(wire_->bytes_max(expected.message));
      active.incoming[p].push_back(
          {&expected,
           link_.recv(expected.message.from, frame_of(name_, bucket, phase, step_), std::move(room),
                      wire_->shown_bytes(expected.message)),
           {}});
      active.incoming[p].back().frame.tell(bell_);
    }
  }
  send_phase(active);
}

// Takes the bucket as far as it goes without waiting; whether that was any further.
Result<bool> HierarchicalAllreduce::advance(Active& active) {
  bool moved = false;
  while (active.phase < kReducePhases && all_came(active)) {
    for (Incoming& incoming : active.incoming[active.phase]) MOTLEY_TRY(take(active, incoming));
    MOTLEY_TRY(end_phase(active));
    if (++active.phase < kReducePhases) send_phase(active);
    moved = true;
  }
  for (Outgoing& outgoing : active.outgoing) {
    if (!outgoing.pending.valid() || !outgoing.pending.done()) continue;
    MOTLEY_TRY(take_back(active, outgoing));
    moved = true;
  }
  std::erase_if(active.outgoing, [](const Outgoing& o) { return !o.pending.valid(); });
  return moved;
}

bool HierarchicalAllreduce::all_came(const Active& active) {
  return std::ranges::all_of(active.incoming[active.phase], [](const Incoming& incoming) {
    return !incoming.frame.valid() || incoming.frame.done();
  });
}

// Until anything ends that was begun. The oldest bucket is the one to name: all others may go on
// only once it does.
Result<void> HierarchicalAllreduce::wait_for_any(const Active& oldest) {
  const double start_s = now_s();
  const bool rang = bell_->wait(patience_.deadline());
  wait_s_ += now_s() - start_s;
  if (rang) return {};
  return with_context(
      nothing_came(fmt::format("rank {}", missing_from(oldest).value), patience_.timeout_s()),
      words(oldest));
}

// REQUIRES: the bucket is not done.
Rank HierarchicalAllreduce::missing_from(const Active& active) {
  if (active.phase == kReducePhases) return active.outgoing.front().to;
  const auto missing = std::ranges::find_if(active.incoming[active.phase], [](const Incoming& i) {
    return i.frame.valid() && !i.frame.done();
  });
  const bool came_meanwhile = missing == active.incoming[active.phase].end();
  return (came_meanwhile ? active.incoming[active.phase].begin() : missing)->expected->message.from;
}

Result<void> HierarchicalAllreduce::take(const Active& active, Incoming& incoming) {
  if (!incoming.frame.valid()) return {};
  auto buffer = incoming.frame.wait(patience_.deadline());
  if (!buffer.ok()) return with_context(std::move(buffer).error(), words(active));
  incoming.buffer = std::move(buffer).value();
  return {};
}

Result<void> HierarchicalAllreduce::take_back(const Active& active, Outgoing& outgoing) {
  auto buffer = outgoing.pending.wait(
      patience_.deadline(), fmt::format("rank {} to take what was sent", outgoing.to.value));
  if (!buffer.ok()) return with_context(std::move(buffer).error(), words(active));
  buffers_.give(std::move(buffer).value());
  return {};
}

// Everything that the phase waited for has come.
Result<void> HierarchicalAllreduce::end_phase(Active& active) {
  const auto phase = static_cast<ReducePhase>(active.phase);
  std::span<Incoming> rest(active.incoming[active.phase]);
  while (!rest.empty()) {
    const ValueRange range = rest.front().expected->message.values;
    const auto alike =
        leading_alike(rest, [](const Incoming& i) { return i.expected->message.values; });
    for (const Incoming& incoming : alike) {
      came_.push_back({incoming.expected, std::as_const(incoming.buffer).payload()});
    }
    if (phase == ReducePhase::kCrossReduceScatter && has_owners_) {
      encoder_.begin_sum({ReducePhase::kCrossAllGather, range, step_}, at(range));
    }
    const auto fits = is_added(phase) ? wire_->add(active.bucket, came_,
                                                   is_inside(phase) ? place_ : machine_, at(range))
                                      : wire_->decode(active.bucket, came_.front(), at(range));
    if (!fits.ok()) {
      return with_context(fits.error(), fmt::format("{}, from rank {}", words(active),
                                                    alike.front().expected->message.from.value));
    }
    came_.clear();
    for (Incoming& incoming : alike) buffers_.give(std::move(incoming.buffer));
    rest = rest.subspan(alike.size());
  }
  return {};
}

void HierarchicalAllreduce::send_phase(Active& active) {
  std::span<const ReduceMessage> rest(roles_[active.bucket].sends[active.phase]);
  while (!rest.empty()) {
    const auto alike = leading_alike(rest, [](const ReduceMessage& m) { return m.values; });
    send_alike(active, alike);
    rest = rest.subspan(alike.size());
  }
}

// Messages of the same values, which are written or encoded once.
void HierarchicalAllreduce::send_alike(Active& active, std::span<const ReduceMessage> messages) {
  const auto phase = static_cast<ReducePhase>(active.phase);
  const auto send = [&](const ReduceMessage& message, Buffer buffer) {
    active.outgoing.push_back({link_.send(message.to, frame_of(name_, active.bucket, phase, step_),
                                          std::move(buffer), wire_->shown_bytes(message)),
                               message.to});
    active.outgoing.back().pending.tell(bell_);
  };
  auto left = std::ranges::count_if(
      messages, [&](const ReduceMessage& message) { return !wire_->is_shown(message); });
  bool is_shown = false;
  std::optional<Buffer> encoded;  // copies of it are sent, and at last it itself
  for (const ReduceMessage& message : messages) {
    if (wire_->is_shown(message)) {
      if (!is_shown) wire_->show(active.bucket, message, at(message.values));
      is_shown = true;
      send(message, buffers_.take(0));
    } else {
      if (!encoded) encoded = encode(message);
      send(message, --left == 0 ? std::move(*encoded) : copy_of(*encoded));
    }
  }
}

Buffer HierarchicalAllreduce::encode(const ReduceMessage& message) {
  Buffer buffer = buffers_.take(wire_->bytes_max(message));
  buffer.set_payload_bytes(
      wire_->encode(message, step_, at(message.values), buffer.payload_room()));
  return buffer;
}

Buffer HierarchicalAllreduce::copy_of(const Buffer& buffer) {
  Buffer copy = buffers_.take(buffer.payload_bytes_max());
  copy.set_payload_bytes(buffer.payload_bytes());
  std::ranges::copy(buffer.payload(), copy.payload().begin());
  return copy;
}

HierarchicalAllreduce::Active& HierarchicalAllreduce::slot(std::size_t bucket) {
  return actives_[bucket % actives_.size()];
}

std::span<float> HierarchicalAllreduce::at(ValueRange range) const {
  return values_.subspan(range.first, range.count);
}

std::string HierarchicalAllreduce::words(const Active& active) const {
  return fmt::format("summing {}, bucket {} of {}, {}", to_words(name_), active.bucket + 1,
                     roles_.size(), to_words(static_cast<ReducePhase>(active.phase)));
}

}  // namespace motley
