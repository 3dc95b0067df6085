// A bucket has a slot on a board for values that others add up and one for sums, and a later bucket
// has them again only when their readers are done, which no message has to say. Values: who adds
// them up tells its sums afterwards, without which this rank's bucket would not be done, nor the
// later one begun. Sums: every neighbour reads them before it begins the later bucket, and this
// rank writes sums of that one only once every neighbour's values of it have come.
#include "pipeline/reduce/sum_wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "compression/codec_chain.h"
#include "pipeline/schedule/bucket_role.h"

namespace motley {

Result<std::unique_ptr<SumWire>> SumWire::make(FrameLink& link,
                                               Rank self,
                                               const AllreducePlan& plan,
                                               SliceEncoder& encoder,
                                               std::size_t window) {
  MOTLEY_ASSIGN(auto plain, make_codec("none"));
  return std::unique_ptr<SumWire>(new SumWire(link, self, plan, encoder, window, std::move(plain)));
}

SumWire::SumWire(FrameLink& link,
                 Rank self,
                 const AllreducePlan& plan,
                 SliceEncoder& encoder,
                 std::size_t window,
                 std::unique_ptr<const Codec> plain)
    : link_(link),
      self_(self),
      encoder_(encoder),
      window_(window),
      plain_(std::move(plain)),
      neighbours_(plan.machines()[plan.machine_of(self)]) {
  std::erase(neighbours_, self);
  for (const ReduceBucket& bucket : plan.buckets()) {
    first_values_.push_back(bucket.values.first);
    longest_bucket_ = std::max(longest_bucket_, bucket.values.count);
  }
}

Result<void> SumWire::share_memory(const SumId& name, std::int64_t step, Patience patience) {
  MOTLEY_CHECK(!boards_, "memory to sum {} was agreed on before", to_words(name));
  if (first_values_.empty()) {
    boards_.emplace();
    return {};
  }
  auto agreed =
      LocalBoards::agree(link_, neighbours_, name, step,
                         {.slots = 2 * window_, .slot_values = longest_bucket_}, patience);
  if (!agreed.ok()) {
    return with_context(std::move(agreed).error(),
                        fmt::format("sharing memory to sum {}", to_words(name)));
  }
  boards_.emplace(std::move(agreed).value());
  return {};
}

bool SumWire::is_shown(const ReduceMessage& message) const {
  if (!boards_ || !is_inside(message.phase)) return false;
  return message.from == self_ ? boards_->is_read_by(message.to) : boards_->reads(message.from);
}

std::size_t SumWire::shown_bytes(const ReduceMessage& message) const {
  return is_shown(message) ? message.values.count * sizeof(float) : 0;
}

std::size_t SumWire::bytes_max(const ReduceMessage& message) const {
  if (is_shown(message)) return 0;
  return is_inside(message.phase) ? plain_->bytes_max(message.values.count)
                                  : encoder_.bytes_max(message.values.count);
}

void SumWire::show(const Message& shown, std::span<const float> values) {
  const auto slot = boards_->own(slot_of(shown));
  std::ranges::copy(values, slot.subspan(place_of(shown)).begin());
}

std::size_t SumWire::encode(const Message& sent,
                            std::span<float> values,
                            std::span<std::byte> wire) {
  const ReduceMessage& message = sent.message;
  return is_inside(message.phase)
             ? plain_->encode(values, wire)
             : encoder_.encode({message.phase, message.values, sent.step}, values, wire);
}

Result<void> SumWire::decode(const Came& came, std::span<float> values) const {
  const ReduceMessage& message = came.message.message;
  if (is_shown(message)) {
    std::ranges::copy(shown(came.message), values.begin());
    return {};
  }
  return is_inside(message.phase) ? plain_->decode(came.payload, values)
                                  : encoder_.decode(came.payload, values);
}

Result<void> SumWire::add_one(const Came& came, std::span<float> sum) const {
  const ReduceMessage& message = came.message.message;
  if (is_shown(message)) {
    sums_.add(shown(came.message), sum);
    return {};
  }
  return is_inside(message.phase) ? plain_->decode_add(came.payload, sum)
                                  : encoder_.decode_add(came.payload, sum);
}

// Two terms may be added either way round.
Result<void> SumWire::add(std::span<const Came> came, std::size_t own_order, std::span<float> own) {
  const auto behind =
      std::ranges::find_if(came, [&](const Came& c) { return c.order > own_order; });
  const auto before = came.first(static_cast<std::size_t>(behind - came.begin()));
  if (before.size() == 1) {
    MOTLEY_TRY(add_one(before.front(), own));
  } else if (before.size() > 1) {
    total_.resize(own.size());
    MOTLEY_TRY(decode(before.front(), total_));
    for (const Came& term : before.subspan(1)) MOTLEY_TRY(add_one(term, total_));
    sums_.add(total_, own);
  }
  for (const Came& term : came.subspan(before.size())) MOTLEY_TRY(add_one(term, own));
  return {};
}

std::span<const float> SumWire::shown(const Message& came) const {
  const auto slot = boards_->of(came.message.from, slot_of(came));
  return slot.subspan(place_of(came), came.message.values.count);
}

// The system gives pages only to what is written of a slot.
std::size_t SumWire::slot_of(const Message& message) const {
  const bool has_sums = message.message.phase == ReducePhase::kLocalAllGather;
  return 2 * (message.bucket % window_) + (has_sums ? 1 : 0);
}

std::size_t SumWire::place_of(const Message& message) const {
  return message.message.values.first - first_values_[message.bucket];
}

}  // namespace motley
