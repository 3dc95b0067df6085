// Whatever comes moves its bucket on at once: were the oldest bucket waited for alone, a slow link
// would keep this rank from sending what others wait for. It cannot hang: of the oldest bucket of
// all ranks every message is sent by a rank for which it is the oldest too, or which is done with
// it.
#include "pipeline/execute/hierarchical_sum.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "compression/codec_chain.h"

namespace motley {
namespace {

constexpr std::size_t kNumbersMax = std::size_t{1} << 24;  // that a frame tells apart
static_assert(kReducePhases == SumPart::kPhases);

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

}  // namespace

std::string to_words(const SumId& id) {
  return id.kind == FrameKind::kTiedGradient ? "the tied gradients"
                                             : fmt::format("chunk {}", id.chunk.value);
}

Result<std::unique_ptr<HierarchicalSum>> HierarchicalSum::make(
    FrameLink& link,
    Rank self,
    const SumId& name,
    const AllreducePlan& plan,
    SliceEncoder& encoder,
    const HierarchicalSumOptions& options) {
  MOTLEY_CHECK(options.window > 0, "a window of {} buckets", options.window);
  if (plan.buckets().size() > kNumbersMax / kReducePhases) {
    return Error{ErrorCode::kConfig,
                 fmt::format("the sum of {} has {} buckets", to_words(name), plan.buckets().size()),
                 fmt::format("a frame numbers at most {}", kNumbersMax / kReducePhases),
                 "cut the model into more stages"};
  }
  MOTLEY_ASSIGN(auto plain, make_codec("none"));
  return std::unique_ptr<HierarchicalSum>(
      new HierarchicalSum(link, self, name, plan, encoder, options, std::move(plain)));
}

HierarchicalSum::HierarchicalSum(FrameLink& link,
                                 Rank self,
                                 const SumId& name,
                                 const AllreducePlan& plan,
                                 SliceEncoder& encoder,
                                 const HierarchicalSumOptions& options,
                                 std::unique_ptr<const Codec> plain)
    : link_(link),
      name_(name),
      encoder_(encoder),
      options_(options),
      plain_(std::move(plain)),
      value_count_(plan.value_count()),
      machine_(plan.machine_of(self)),
      place_(plan.place_of(self)),
      has_owners_(plan.machines().size() > 2) {
  for (const ReduceBucket& bucket : plan.buckets()) {
    first_values_.push_back(bucket.values.first);
    roles_.push_back(role_in(plan, bucket, self));
  }
  actives_.resize(std::min(roles_.size(), static_cast<std::size_t>(options.window)));
}

std::vector<EncodedSlice> HierarchicalSum::encoded_slices() const {
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

Result<double> HierarchicalSum::run(std::int64_t step, std::span<float> values) {
  FinalMark mark(bell_);
  mark.set(0);
  return run(step, values, mark);
}

Result<double> HierarchicalSum::run(std::int64_t step,
                                    std::span<float> values,
                                    const FinalMark& mark) {
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
      (void)bell_->wait(options_.patience.deadline());
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
  return wait_s_;
}

bool HierarchicalSum::may_begin(std::size_t bucket, const FinalMark& mark) const {
  return first_values_[bucket] >= mark.first();
}

Error HierarchicalSum::abandoned() const {
  return {ErrorCode::kInternal, fmt::format("summing {} was abandoned", to_words(name_)),
          "the step ended early", "see the error that ended it"};
}

void HierarchicalSum::begin(std::size_t bucket) {
  Active& active = slot(bucket);
  active.bucket = bucket;
  active.phase = 0;
  for (std::size_t p = 0; p < kReducePhases; ++p) {
    const auto phase = static_cast<ReducePhase>(p);
    active.incoming[p].clear();
    for (const ExpectedMessage& expected : roles_[bucket].receives[p]) {
      Buffer room = buffers_.take(bytes_max(phase, expected.message.values.count));
      active.incoming[p].push_back(
          {&expected, link_.recv(expected.message.from, id(bucket, phase), std::move(room)), {}});
      active.incoming[p].back().frame.tell(bell_);
    }
  }
  send_phase(active);
}

// Takes the bucket as far as it goes without waiting; whether that was any further.
Result<bool> HierarchicalSum::advance(Active& active) {
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

bool HierarchicalSum::all_came(const Active& active) {
  return std::ranges::all_of(active.incoming[active.phase], [](const Incoming& incoming) {
    return !incoming.frame.valid() || incoming.frame.done();
  });
}

// Until anything ends that was begun. The oldest bucket is the one to name: all others may go on
// only once it does.
Result<void> HierarchicalSum::wait_for_any(const Active& oldest) {
  const double start_s = now_s();
  const bool rang = bell_->wait(options_.patience.deadline());
  wait_s_ += now_s() - start_s;
  if (rang) return {};
  return Error{ErrorCode::kPeer,
               fmt::format("{}: waiting for rank {}: nothing came within {:.3g} s", words(oldest),
                           missing_from(oldest).value, options_.patience.timeout_s()),
               "the other process stopped, is far behind, or the network lost it",
               "look at that process's log and at the link to its machine"};
}

// REQUIRES: the bucket is not done.
Rank HierarchicalSum::missing_from(const Active& active) {
  if (active.phase == kReducePhases) return active.outgoing.front().to;
  const auto missing = std::ranges::find_if(active.incoming[active.phase], [](const Incoming& i) {
    return i.frame.valid() && !i.frame.done();
  });
  const bool came_meanwhile = missing == active.incoming[active.phase].end();
  return (came_meanwhile ? active.incoming[active.phase].begin() : missing)->expected->message.from;
}

Result<void> HierarchicalSum::take(const Active& active, Incoming& incoming) {
  if (!incoming.frame.valid()) return {};
  auto buffer = incoming.frame.wait(options_.patience.deadline());
  if (!buffer.ok()) return with_context(std::move(buffer).error(), words(active));
  incoming.buffer = std::move(buffer).value();
  return {};
}

Result<void> HierarchicalSum::take_back(const Active& active, Outgoing& outgoing) {
  auto buffer =
      outgoing.pending.wait(options_.patience.deadline(),
                            fmt::format("rank {} to take what was sent", outgoing.to.value));
  if (!buffer.ok()) return with_context(std::move(buffer).error(), words(active));
  buffers_.give(std::move(buffer).value());
  return {};
}

// Everything that the phase waited for has come.
Result<void> HierarchicalSum::end_phase(Active& active) {
  const auto phase = static_cast<ReducePhase>(active.phase);
  std::span<Incoming> rest(active.incoming[active.phase]);
  while (!rest.empty()) {
    const ValueRange range = rest.front().expected->message.values;
    const auto end = std::ranges::find_if(
        rest, [&](const Incoming& i) { return i.expected->message.values != range; });
    const auto terms = rest.first(static_cast<std::size_t>(end - rest.begin()));
    const auto fits =
        is_added(phase) ? add_up(phase, terms) : decode(phase, terms.front().buffer, at(range));
    if (!fits.ok()) {
      return with_context(fits.error(), fmt::format("{}, from rank {}", words(active),
                                                    terms.front().expected->message.from.value));
    }
    for (Incoming& term : terms) buffers_.give(std::move(term.buffer));
    rest = rest.subspan(terms.size());
  }
  return {};
}

// Makes this rank's values the sum of its own and those that came for the same range, in their
// order. Two terms may be added either way round.
Result<void> HierarchicalSum::add_up(ReducePhase phase, std::span<const Incoming> terms) {
  const ValueRange range = terms.front().expected->message.values;
  const std::span<float> own = at(range);
  if (phase == ReducePhase::kCrossReduceScatter && has_owners_) {
    encoder_.begin_sum({ReducePhase::kCrossAllGather, range, step_}, own);
  }
  const std::size_t own_order = is_inside(phase) ? place_ : machine_;
  const auto behind = std::ranges::find_if(
      terms, [&](const Incoming& term) { return term.expected->order > own_order; });
  const auto before = terms.first(static_cast<std::size_t>(behind - terms.begin()));
  if (before.size() == 1) {
    MOTLEY_TRY(decode_add(phase, before.front().buffer, own));
  } else if (before.size() > 1) {
    total_.resize(own.size());
    MOTLEY_TRY(decode(phase, before.front().buffer, total_));
    for (const Incoming& term : before.subspan(1)) {
      MOTLEY_TRY(decode_add(phase, term.buffer, total_));
    }
    sums_.add(total_, own);
  }
  for (const Incoming& term : terms.subspan(before.size())) {
    MOTLEY_TRY(decode_add(phase, term.buffer, own));
  }
  return {};
}

void HierarchicalSum::send_phase(Active& active) {
  const auto phase = static_cast<ReducePhase>(active.phase);
  const auto& sends = roles_[active.bucket].sends[active.phase];
  const auto send = [&](Rank to, Buffer buffer) {
    active.outgoing.push_back({link_.send(to, id(active.bucket, phase), std::move(buffer)), to});
    active.outgoing.back().pending.tell(bell_);
  };
  for (std::size_t i = 0; i < sends.size();) {
    const ValueRange range = sends[i].values;
    const std::size_t room = bytes_max(phase, range.count);
    Buffer buffer = buffers_.take(room);
    buffer.set_payload_bytes(encode(phase, range, buffer.payload_room()));
    const Rank to = sends[i].to;
    for (++i; i < sends.size() && sends[i].values == range; ++i) {
      Buffer copy = buffers_.take(room);
      copy.set_payload_bytes(buffer.payload_bytes());
      std::ranges::copy(buffer.payload(), copy.payload().begin());
      send(sends[i].to, std::move(copy));
    }
    send(to, std::move(buffer));
  }
}

std::size_t HierarchicalSum::bytes_max(ReducePhase phase, std::size_t count) const {
  return is_inside(phase) ? plain_->bytes_max(count) : encoder_.bytes_max(count);
}

std::size_t HierarchicalSum::encode(ReducePhase phase,
                                    ValueRange range,
                                    std::span<std::byte> wire) {
  return is_inside(phase) ? plain_->encode(at(range), wire)
                          : encoder_.encode({phase, range, step_}, at(range), wire);
}

Result<void> HierarchicalSum::decode(ReducePhase phase,
                                     const Buffer& buffer,
                                     std::span<float> values) const {
  return is_inside(phase) ? plain_->decode(buffer.payload(), values)
                          : encoder_.decode(buffer.payload(), values);
}

Result<void> HierarchicalSum::decode_add(ReducePhase phase,
                                         const Buffer& buffer,
                                         std::span<float> sum) const {
  return is_inside(phase) ? plain_->decode_add(buffer.payload(), sum)
                          : encoder_.decode_add(buffer.payload(), sum);
}

HierarchicalSum::Active& HierarchicalSum::slot(std::size_t bucket) {
  return actives_[bucket % actives_.size()];
}

std::span<float> HierarchicalSum::at(ValueRange range) const {
  return values_.subspan(range.first, range.count);
}

// A bucket has one message from each rank to each other in a phase, but for segments, which come in
// their order.
FrameId HierarchicalSum::id(std::size_t bucket, ReducePhase phase) const {
  const SumPart part{static_cast<std::int32_t>(bucket), static_cast<std::int32_t>(phase)};
  return name_.kind == FrameKind::kTiedGradient ? FrameId::tied_sum(part, step_)
                                                : FrameId::replica_sum(name_.chunk, part, step_);
}

std::string HierarchicalSum::words(const Active& active) const {
  return fmt::format("summing {}, bucket {} of {}, {}", to_words(name_), active.bucket + 1,
                     roles_.size(), to_words(static_cast<ReducePhase>(active.phase)));
}

}  // namespace motley
