// The agreement takes two rounds of messages: each rank offers its buffer, then answers whether it
// could open the other's. Each direction of a pair is agreed on separately, so a rank that cannot
// create or open a buffer still takes part in both rounds.
#include "pipeline/collectives/shared_reduce_buffers.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"

namespace motley {
namespace {

static_assert(std::endian::native == std::endian::little, "offers are little-endian");
static_assert(sizeof(MemoryOffer) == 16, "as docs/formats/frame.md has it");

enum class OfferAnswer : std::uint8_t { kNotOpened = 0, kOpened = 1 };

Error malformed_offer(Rank from, std::string cause) {
  return {ErrorCode::kCorrupt,
          fmt::format("malformed offer of shared memory from rank {}", from.value),
          std::move(cause), "start all ranks from the same version"};
}

// Sends sent[i] to neighbour i and returns what each neighbour sent. [neighbour]
template <typename T>
Result<std::vector<T>> exchange(FrameLink& link,
                                std::span<const Rank> neighbours,
                                const FrameId& name,
                                const std::vector<T>& sent,
                                StallTimeout stall_timeout) {
  std::vector<PendingFrame> receives;
  std::vector<Pending> sends;
  for (std::size_t i = 0; i < neighbours.size(); ++i) {
    receives.push_back(link.recv(neighbours[i], name, Buffer(sizeof(T))));
    sends.push_back(
        link.send(neighbours[i], name, buffer_with(std::as_bytes(std::span(&sent[i], 1)))));
  }
  const Deadline deadline = stall_timeout.deadline();
  std::vector<T> received(neighbours.size());
  for (std::size_t i = 0; i < neighbours.size(); ++i) {
    MOTLEY_ASSIGN(const Buffer buffer, receives[i].wait(deadline));
    if (buffer.payload_bytes() != sizeof(T)) {
      return malformed_offer(neighbours[i], fmt::format("it has {} bytes instead of {}",
                                                        buffer.payload_bytes(), sizeof(T)));
    }
    std::memcpy(&received[i], buffer.payload().data(), sizeof(T));
    MOTLEY_TRY(sends[i].wait(deadline, fmt::format("rank {} to receive an offer of shared memory",
                                                   neighbours[i].value)));
  }
  return received;
}

}  // namespace

Result<SharedReduceBuffers> SharedReduceBuffers::agree(FrameLink& link,
                                                       std::span<const Rank> neighbours,
                                                       const AllreduceId& id,
                                                       std::int64_t step,
                                                       Layout layout,
                                                       StallTimeout stall_timeout) {
  std::vector<Rank> sharing;
  std::ranges::copy_if(neighbours, std::back_inserter(sharing),
                       [&](Rank rank) { return link.shares_memory(rank); });
  SharedReduceBuffers buffers;
  if (sharing.empty()) return buffers;
  buffers.layout_ = layout;
  const std::size_t bytes = layout.slots * layout.slot_values * sizeof(float);
  auto made = SharedMemory::make(bytes);
  if (made.ok()) buffers.own_.emplace(std::move(made).value());
  const MemoryOffer offer = buffers.own_ ? buffers.own_->offer() : MemoryOffer{};
  MOTLEY_ASSIGN(const auto offers, exchange(link, sharing, FrameId::memory(id.kind, id.chunk, step),
                                            std::vector(sharing.size(), offer), stall_timeout));
  std::vector<OfferAnswer> own_answers(sharing.size(), OfferAnswer::kNotOpened);
  for (std::size_t i = 0; i < sharing.size(); ++i) {
    if (offers[i] == MemoryOffer{}) continue;
    auto opened = SharedMemory::open(offers[i], bytes);
    if (!opened.ok()) continue;
    buffers.opened_.emplace(sharing[i], std::move(opened).value());
    own_answers[i] = OfferAnswer::kOpened;
  }
  MOTLEY_ASSIGN(const auto answers,
                exchange(link, sharing, FrameId::memory_ack(id.kind, id.chunk, step), own_answers,
                         stall_timeout));
  for (std::size_t i = 0; i < sharing.size(); ++i) {
    if (answers[i] > OfferAnswer::kOpened) {
      return malformed_offer(sharing[i],
                             fmt::format("{} is neither yes nor no", static_cast<int>(answers[i])));
    }
    if (buffers.own_ && answers[i] == OfferAnswer::kOpened) buffers.readers_.insert(sharing[i]);
  }
  if (buffers.own_) buffers.own_->withdraw();
  return buffers;
}

std::span<float> SharedReduceBuffers::own(std::size_t slot) const {
  MOTLEY_CHECK(own_.has_value() && !readers_.empty(), "no neighbour reads this rank's buffer");
  return slot_of(*own_, slot);
}

std::span<const float> SharedReduceBuffers::of(Rank neighbour, std::size_t slot) const {
  const auto opened = opened_.find(neighbour);
  MOTLEY_CHECK(opened != opened_.end(), "rank {}'s buffer was not opened", neighbour.value);
  return slot_of(opened->second, slot);
}

std::span<float> SharedReduceBuffers::slot_of(const SharedMemory& buffer, std::size_t slot) const {
  auto* const values = reinterpret_cast<float*>(buffer.bytes().data());
  return {values + slot * layout_.slot_values, layout_.slot_values};
}

}  // namespace motley
