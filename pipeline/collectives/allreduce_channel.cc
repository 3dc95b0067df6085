// Reuse of slots. A bucket has two slots of its rank's shared buffer: one for values that
// neighbours add up, one for sums. The bucket `window` places later uses the same slots. No message
// is needed to report that all readers are done:
//
// - Values: a neighbour that adds them up sends its sums afterwards. Without these, this rank's
//   bucket would not be done, and the later bucket not begun.
// - Sums: every neighbour reads them before it begins the later bucket. This rank writes sums of
//   the later bucket only after every neighbour's values of that bucket have arrived.
//
// Within a bucket, one slot would suffice for both: values are written at the offsets of the other
// ranks' slices, sums at those of this rank's own. But in a bucket of another length slices have
// other offsets: this rank could begin such a bucket and overwrite sums that a neighbour still
// reads.
#include "pipeline/collectives/allreduce_channel.h"

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
  MOTLEY_ASSIGN(auto fp32_codec, make_codec("none"));
  return std::unique_ptr<AllreduceChannel>(
      new AllreduceChannel(self, plan, roles, encoder, window, std::move(fp32_codec)));
}

AllreduceChannel::AllreduceChannel(Rank self,
                                   const AllreducePlan& plan,
                                   std::span<const BucketRole> roles,
                                   SliceEncoder& encoder,
                                   std::size_t window,
                                   std::unique_ptr<const Codec> fp32_codec)
    : self_(self),
      roles_(roles),
      encoder_(encoder),
      window_(window),
      fp32_codec_(std::move(fp32_codec)),
      neighbours_(plan.machines()[plan.machine_of(self)]) {
  std::erase(neighbours_, self);
}

Result<void> AllreduceChannel::share_memory(FrameLink& link,
                                            const AllreduceId& id,
                                            std::int64_t step,
                                            StallTimeout stall_timeout) {
  MOTLEY_CHECK(!buffers_, "shared memory for the all-reduce of {} was agreed on before",
               to_words(id));
  // An empty all-reduce has no messages, so it may end before the neighbours have begun it; an
  // agreement would wait for them.
  if (roles_.empty()) {
    buffers_.emplace();
    return {};
  }
  std::size_t longest = 0;
  for (const BucketRole& role : roles_) longest = std::max(longest, role.values.count);
  auto agreed = SharedReduceBuffers::agree(
      link, neighbours_, id, step, {.slots = 2 * window_, .slot_values = longest}, stall_timeout);
  if (!agreed.ok()) {
    return with_context(std::move(agreed).error(),
                        fmt::format("sharing memory for the all-reduce of {}", to_words(id)));
  }
  buffers_.emplace(std::move(agreed).value());
  return {};
}

bool AllreduceChannel::is_published(const ReduceMessage& message) const {
  if (!buffers_ || !is_inside(message.phase)) return false;
  return message.from == self_ ? buffers_->is_read_by(message.to) : buffers_->reads(message.from);
}

std::size_t AllreduceChannel::published_bytes(const ReduceMessage& message) const {
  return is_published(message) ? message.values.count * sizeof(float) : 0;
}

std::size_t AllreduceChannel::bytes_max(const ReduceMessage& message) const {
  if (is_published(message)) return 0;
  return is_inside(message.phase) ? fp32_codec_->bytes_max(message.values.count)
                                  : encoder_.bytes_max(message.values.count);
}

void AllreduceChannel::publish(std::size_t bucket,
                               const ReduceMessage& message,
                               std::span<const float> values) {
  const auto slot = buffers_->own(slot_of(bucket, message.phase));
  std::ranges::copy(values, slot.subspan(offset_of(bucket, message.values)).begin());
}

std::size_t AllreduceChannel::encode(const ReduceMessage& message,
                                     std::int64_t step,
                                     std::span<float> values,
                                     std::span<std::byte> wire) {
  return is_inside(message.phase)
             ? fp32_codec_->encode(values, wire)
             : encoder_.encode({message.phase, message.values, step}, values, wire);
}

Result<void> AllreduceChannel::decode(std::size_t bucket,
                                      const Received& received,
                                      std::span<float> values) const {
  const ReduceMessage& message = received.expected->message;
  if (is_published(message)) {
    std::ranges::copy(published(bucket, message), values.begin());
    return {};
  }
  return is_inside(message.phase) ? fp32_codec_->decode(received.payload, values)
                                  : encoder_.decode(received.payload, values);
}

Result<void> AllreduceChannel::add_one(std::size_t bucket,
                                       const Received& received,
                                       std::span<float> sum) const {
  const ReduceMessage& message = received.expected->message;
  if (is_published(message)) {
    kernels_.add(published(bucket, message), sum);
    return {};
  }
  return is_inside(message.phase) ? fp32_codec_->decode_add(received.payload, sum)
                                  : encoder_.decode_add(received.payload, sum);
}

// The order of two terms does not matter: their sum has the same bits.
Result<void> AllreduceChannel::add(std::size_t bucket,
                                   std::span<const Received> received,
                                   std::size_t own_order,
                                   std::span<float> own) {
  const auto first_after = std::ranges::find_if(
      received, [&](const Received& r) { return r.expected->order > own_order; });
  const auto before = received.first(static_cast<std::size_t>(first_after - received.begin()));
  if (before.size() == 1) {
    MOTLEY_TRY(add_one(bucket, before.front(), own));
  } else if (before.size() > 1) {
    prefix_sum_.resize(own.size());
    MOTLEY_TRY(decode(bucket, before.front(), prefix_sum_));
    for (const Received& term : before.subspan(1)) MOTLEY_TRY(add_one(bucket, term, prefix_sum_));
    kernels_.add(prefix_sum_, own);
  }
  for (const Received& term : received.subspan(before.size()))
    MOTLEY_TRY(add_one(bucket, term, own));
  return {};
}

std::span<const float> AllreduceChannel::published(std::size_t bucket,
                                                   const ReduceMessage& message) const {
  const auto slot = buffers_->of(message.from, slot_of(bucket, message.phase));
  return slot.subspan(offset_of(bucket, message.values), message.values.count);
}

// Unwritten parts of a slot take no memory: the system allocates pages on the first write.
std::size_t AllreduceChannel::slot_of(std::size_t bucket, ReducePhase phase) const {
  return 2 * (bucket % window_) + (phase == ReducePhase::kLocalAllGather ? 1 : 0);
}

std::size_t AllreduceChannel::offset_of(std::size_t bucket, ValueRange values) const {
  return values.first - roles_[bucket].values.first;
}

}  // namespace motley
