// Two rounds of messages: what each offers, and whether it was opened. In between both ends are
// free to fail, since each direction of a pair is agreed on by itself.
#include "pipeline/reduce/shared_reduce_buffers.h"

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

enum class Verdict : std::uint8_t { kNotOpened = 0, kOpened = 1 };

Error nonsense(Rank from, std::string cause) {
  return {ErrorCode::kCorrupt,
          fmt::format("what rank {} says about the memory that it shares", from.value),
          std::move(cause), "start all ranks from the same version"};
}

// Tells every neighbour something and returns what each of them told. [neighbour]
template <typename T>
Result<std::vector<T>> exchange(FrameLink& link,
                                std::span<const Rank> neighbours,
                                const FrameId& name,
                                const std::vector<T>& told,
                                Patience patience) {
  std::vector<PendingFrame> receives;
  std::vector<Pending> sends;
  for (std::size_t i = 0; i < neighbours.size(); ++i) {
    receives.push_back(link.recv(neighbours[i], name, Buffer(sizeof(T))));
    sends.push_back(
        link.send(neighbours[i], name, buffer_with(std::as_bytes(std::span(&told[i], 1)))));
  }
  const Deadline deadline = patience.deadline();
  std::vector<T> heard(neighbours.size());
  for (std::size_t i = 0; i < neighbours.size(); ++i) {
    MOTLEY_ASSIGN(const Buffer buffer, receives[i].wait(deadline));
    if (buffer.payload_bytes() != sizeof(T)) {
      return nonsense(neighbours[i], fmt::format("it has {} bytes instead of {}",
                                                 buffer.payload_bytes(), sizeof(T)));
    }
    std::memcpy(&heard[i], buffer.payload().data(), sizeof(T));
    MOTLEY_TRY(sends[i].wait(
        deadline, fmt::format("rank {} to take an offer of memory", neighbours[i].value)));
  }
  return heard;
}

}  // namespace

Result<SharedReduceBuffers> SharedReduceBuffers::agree(FrameLink& link,
                                                       std::span<const Rank> neighbours,
                                                       const AllreduceId& sum,
                                                       std::int64_t step,
                                                       Form form,
                                                       Patience patience) {
  std::vector<Rank> sharing;
  std::ranges::copy_if(neighbours, std::back_inserter(sharing),
                       [&](Rank rank) { return link.shares_memory(rank); });
  SharedReduceBuffers boards;
  if (sharing.empty()) return boards;
  boards.form_ = form;
  const bool is_tied = sum.kind == FrameKind::kTiedGradient;
  const std::size_t bytes = form.slots * form.slot_values * sizeof(float);
  auto made = SharedMemory::make(bytes);
  if (made.ok()) boards.own_.emplace(std::move(made).value());
  const MemoryOffer offer = boards.own_ ? boards.own_->offer() : MemoryOffer{};
  MOTLEY_ASSIGN(const auto offers,
                exchange(link, sharing, FrameId::memory(sum.chunk, is_tied, step),
                         std::vector(sharing.size(), offer), patience));
  std::vector<Verdict> verdicts(sharing.size(), Verdict::kNotOpened);
  for (std::size_t i = 0; i < sharing.size(); ++i) {
    if (offers[i] == MemoryOffer{}) continue;
    auto opened = SharedMemory::open(offers[i], bytes);
    if (!opened.ok()) continue;
    boards.theirs_.emplace(sharing[i], std::move(opened).value());
    verdicts[i] = Verdict::kOpened;
  }
  MOTLEY_ASSIGN(const auto answers,
                exchange(link, sharing, FrameId::memory_answer(sum.chunk, is_tied, step), verdicts,
                         patience));
  for (std::size_t i = 0; i < sharing.size(); ++i) {
    if (answers[i] > Verdict::kOpened) {
      return nonsense(sharing[i],
                      fmt::format("{} is neither yes nor no", static_cast<int>(answers[i])));
    }
    if (boards.own_ && answers[i] == Verdict::kOpened) boards.readers_.insert(sharing[i]);
  }
  if (boards.own_) boards.own_->withdraw();
  return boards;
}

std::span<float> SharedReduceBuffers::own(std::size_t slot) const {
  MOTLEY_CHECK(own_.has_value() && !readers_.empty(), "nobody reads this rank's board");
  return slot_of(*own_, slot);
}

std::span<const float> SharedReduceBuffers::of(Rank neighbour, std::size_t slot) const {
  const auto board = theirs_.find(neighbour);
  MOTLEY_CHECK(board != theirs_.end(), "rank {}'s board was not opened", neighbour.value);
  return slot_of(board->second, slot);
}

std::span<float> SharedReduceBuffers::slot_of(const SharedMemory& board, std::size_t slot) const {
  auto* const values = reinterpret_cast<float*>(board.bytes().data());
  return {values + slot * form_.slot_values, form_.slot_values};
}

}  // namespace motley
