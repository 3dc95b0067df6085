// Wait flags and positions are sequentially consistent: a waiting end sets its flag and then checks
// the ring again; the other end advances its position and then checks the flag. So at least one of
// the two sees the other's write.
#include "comm/tcp/shared_ring.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <utility>

namespace motley {
namespace {

static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free &&
                  std::atomic_ref<std::uint32_t>::is_always_lock_free,
              "what two processes share cannot have a lock of one of them");
static_assert(offsetof(SharedRing, taken_B) == 64 && offsetof(SharedRing, reader_waits) == 128 &&
                  offsetof(SharedRing, writer_waits) == 192 && offsetof(SharedRing, bytes) == 256,
              "as docs/formats/tcp.md has it");

// Copied before the other end sees an advance, so that both ends copy concurrently.
constexpr std::size_t kStepBytes = std::size_t{32} << 10;

// The free space at which a blocked writer is woken.
constexpr std::size_t kWakeRoomBytes = kRingBytes / 2;

template <class Number>
Number seen(Number& shared) {
  return std::atomic_ref(shared).load();
}

template <class Number>
void publish(Number& shared, Number value) {
  std::atomic_ref(shared).store(value);
}

// Clears the wait flag; returns whether it was set.
bool take_note(std::uint32_t& note) {
  return seen(note) != 0 && std::atomic_ref(note).exchange(0) != 0;
}

Error nonsense(std::uint64_t behind_B) {
  return {
      ErrorCode::kPeer, "the shared memory ring of this rank pair",
      fmt::format("its positions are {} bytes apart, in a ring of {} bytes", behind_B, kRingBytes),
      ""};
}

// The bytes from this position to the end of the ring's memory.
std::span<std::byte> from_place(SharedRing& ring, std::uint64_t place_B) {
  return std::span(ring.bytes).subspan(place_B % kRingBytes);
}

}  // namespace

Result<std::size_t> RingWriter::space() const {
  const std::uint64_t behind_B = written_B_ - seen(ring_.taken_B);
  if (behind_B > kRingBytes) return nonsense(behind_B);
  return kRingBytes - static_cast<std::size_t>(behind_B);
}

Result<RingMove> RingWriter::write(std::span<const std::byte> from) {
  RingMove move;
  while (move.count < from.size()) {
    MOTLEY_ASSIGN(std::size_t free, space());
    if (free == 0) {
      publish(ring_.writer_waits, std::uint32_t{1});
      MOTLEY_ASSIGN(free, space());
      if (free == 0) break;
      publish(ring_.writer_waits, std::uint32_t{0});
    }
    const auto place = from_place(ring_, written_B_);
    const std::size_t count = std::min({from.size() - move.count, free, place.size(), kStepBytes});
    std::memcpy(place.data(), from.data() + move.count, count);
    written_B_ += count;
    move.count += count;
    publish(ring_.written_B, written_B_);
  }
  move.wakes_peer = move.count > 0 && take_note(ring_.reader_waits);
  return move;
}

Result<std::size_t> RingReader::waiting() const {
  const std::uint64_t behind_B = seen(ring_.written_B) - taken_B_;
  if (behind_B > kRingBytes) return nonsense(behind_B);
  return static_cast<std::size_t>(behind_B);
}

Result<RingMove> RingReader::read(std::span<std::byte> into) {
  RingMove move;
  while (move.count < into.size()) {
    MOTLEY_ASSIGN(std::size_t there, waiting());
    if (there == 0 && move.count > 0) break;
    if (there == 0) {
      publish(ring_.reader_waits, std::uint32_t{1});
      MOTLEY_ASSIGN(there, waiting());
      if (there == 0) return move;
      publish(ring_.reader_waits, std::uint32_t{0});
    }
    const auto place = from_place(ring_, taken_B_);
    const std::size_t count = std::min({into.size() - move.count, there, place.size(), kStepBytes});
    std::memcpy(into.data() + move.count, place.data(), count);
    taken_B_ += count;
    move.count += count;
    publish(ring_.taken_B, taken_B_);
  }
  MOTLEY_ASSIGN(const std::size_t left, waiting());
  move.wakes_peer = kRingBytes - left >= kWakeRoomBytes && take_note(ring_.writer_waits);
  return move;
}

SharedRing& RingPair::ring(std::size_t number) const {
  return reinterpret_cast<SharedRing*>(memory_.bytes().data())[number];
}

RingPair::RingPair(SharedMemory memory, End end)
    : memory_(std::move(memory)),
      writer_(ring(end == End::kOffering ? 0 : 1)),
      reader_(ring(end == End::kOffering ? 1 : 0)) {
  memory_.withdraw();
}

}  // namespace motley
