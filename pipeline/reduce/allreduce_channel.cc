// A bucket has a slot on a board for values that others add up and one for sums, and a later bucket
// has them again only when their readers are done, which no message has to say. Values: who adds
// them up tells its sums afterwards, without which this rank's bucket would not be done, nor the
// later one begun. Sums: every neighbour reads them before it begins the later bucket, and this
// rank writes sums of that one only once every neighbour's values of it have come.
//
// Within a bucket one slot would do for both: values go where the others' slices lie, sums where
// this rank's own does. But slices lie elsewhere in a bucket of another length, and this rank may
// begin such a one, and write values where its sums stand, while a neighbour still reads them.
#include "pipeline/reduce/allreduce_channel.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "compression/make_codec.h"

namespace motley {

Result<std::unique_ptr<AllreduceChannel>> AllreduceChannel::make(Rank self,
                                                                 const AllreducePlan& plan,
                                                                 std::span<const BucketRole> roles,
                                                                 SliceEncoder& encoder,
                                                                 std::size_t window) {
  MOTLEY_ASSIGN(auto plain, make_codec("none"));
  return std::unique_ptr<AllreduceChannel>(
      new AllreduceChannel(self, plan, roles, encoder, window, std::move(plain)));
}

AllreduceChannel::AllreduceChannel(Rank self,
                                   const AllreducePlan& plan,
                                   std::span<const BucketRole> roles,
                                   SliceEncoder& encoder,
                                   std::size_t window,
                                   std::unique_ptr<const Codec> plain)
    : self_(self),
      roles_(roles),
      encoder_(encoder),
      window_(window),
      plain_(std::move(plain)),
      neighbours_(plan.machines()[plan.machine_of(self)]) {
  std::erase(neighbours_, self);
}

Result<void> AllreduceChannel::share_memory(FrameLink& link,
                                            const AllreduceId& name,
                                            std::int64_t step,
                                            Patience patience) {
  MOTLEY_CHECK(!boards_, "memory to sum {} was agreed on before", to_words(name));
  // An empty sum has no messages, so that its end does not mean that the neighbours have begun it:
  // this rank would wait for them.
  if (roles_.empty()) {
    boards_.emplace();
    return {};
  }
  std::size_t longest = 0;
  for (const BucketRole& role : roles_) longest = std::max(longest, role.values.count);
  auto agreed = SharedReduceBuffers::agree(
      link, neighbours_, name, step, {.slots = 2 * window_, .slot_values = longest}, patience);
  if (!agreed.ok()) {
    return with_context(std::move(agreed).error(),
                        fmt::format("sharing memory to sum {}", to_words(name)));
  }
  boards_.emplace(std::move(agreed).value());
  return {};
}

bool AllreduceChannel::is_shown(const ReduceMessage& message) const {
  if (!boards_ || !is_inside(message.phase)) return false;
  return message.from == self_ ? boards_->is_read_by(message.to) : boards_->reads(message.from);
}

std::size_t AllreduceChannel::shown_bytes(const ReduceMessage& message) const {
  return is_shown(message) ? message.values.count * sizeof(float) : 0;
}

std::size_t AllreduceChannel::bytes_max(const ReduceMessage& message) const {
  if (is_shown(message)) return 0;
  return is_inside(message.phase) ? plain_->bytes_max(message.values.count)
                                  : encoder_.bytes_max(message.values.count);
}

void AllreduceChannel::show(std::size_t bucket,
                            const ReduceMessage& shown,
                            std::span<const float> values) {
  const auto slot = boards_->own(slot_of(bucket, shown.phase));
  std::ranges::copy(values, slot.subspan(place_of(bucket, shown.values)).begin());
}

std::size_t AllreduceChannel::encode(const ReduceMessage& sent,
                                     std::int64_t step,
                                     std::span<float> values,
                                     std::span<std::byte> wire) {
  return is_inside(sent.phase) ? plain_->encode(values, wire)
                               : encoder_.encode({sent.phase, sent.values, step}, values, wire);
}

Result<void> AllreduceChannel::decode(std::size_t bucket,
                                      const Came& came,
                                      std::span<float> values) const {
  const ReduceMessage& message = came.expected->message;
  if (is_shown(message)) {
    std::ranges::copy(on_board_of(bucket, message), values.begin());
    return {};
  }
  return is_inside(message.phase) ? plain_->decode(came.payload, values)
                                  : encoder_.decode(came.payload, values);
}

Result<void> AllreduceChannel::add_one(std::size_t bucket,
                                       const Came& came,
                                       std::span<float> sum) const {
  const ReduceMessage& message = came.expected->message;
  if (is_shown(message)) {
    sums_.add(on_board_of(bucket, message), sum);
    return {};
  }
  return is_inside(message.phase) ? plain_->decode_add(came.payload, sum)
                                  : encoder_.decode_add(came.payload, sum);
}

// Two terms may be added either way round.
Result<void> AllreduceChannel::add(std::size_t bucket,
                                   std::span<const Came> came,
                                   std::size_t own_order,
                                   std::span<float> own) {
  const auto behind =
      std::ranges::find_if(came, [&](const Came& c) { return c.expected->order > own_order; });
  const auto before = came.first(static_cast<std::size_t>(behind - came.begin()));
  if (before.size() == 1) {
    MOTLEY_TRY(add_one(bucket, before.front(), own));
  } else if (before.size() > 1) {
    total_.resize(own.size());
    MOTLEY_TRY(decode(bucket, before.front(), total_));
    for (const Came& term : before.subspan(1)) MOTLEY_TRY(add_one(bucket, term, total_));
    sums_.add(total_, own);
  }
  for (const Came& term : came.subspan(before.size())) MOTLEY_TRY(add_one(bucket, term, own));
  return {};
}

std::span<const float> AllreduceChannel::on_board_of(std::size_t bucket,
                                                     const ReduceMessage& came) const {
  const auto slot = boards_->of(came.from, slot_of(bucket, came.phase));
  return slot.subspan(place_of(bucket, came.values), came.values.count);
}

// The system gives pages only to what is written of a slot.
std::size_t AllreduceChannel::slot_of(std::size_t bucket, ReducePhase phase) const {
  return 2 * (bucket % window_) + (phase == ReducePhase::kLocalAllGather ? 1 : 0);
}

std::size_t AllreduceChannel::place_of(std::size_t bucket, ValueRange values) const {
  return values.first - roles_[bucket].values.first;
}

}  // namespace motley
