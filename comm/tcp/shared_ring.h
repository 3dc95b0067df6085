// The bytes between two processes in memory that both see: a ring for each direction, written by
// one and read by the other, each by one thread at a time. Neither end ever waits in here: one that
// finds the ring empty, or full, leaves a note in it, and the other end then has to wake it by a
// bell of the caller's (comm/tcp/tcp_stream.h: a byte on the socket that joins the two).
//
// The other end is not trusted: what it says about a ring is checked before it is believed, and
// bytes are copied out before anybody looks at them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "comm/transport/shared_memory.h"

namespace motley {

// Long enough that neither end waits for the other at every turn, short enough for the caches.
inline constexpr std::size_t kRingBytes = std::size_t{2} << 20;

// SharedRing lies in shared memory as it stands here, zeros at first; each end writes cache lines
// of its own.
struct SharedRing {
  alignas(64) std::uint64_t written_B = 0;  // since the beginning; the writer's
  alignas(64) std::uint64_t taken_B = 0;    // the reader's
  alignas(64) std::uint32_t reader_waits = 0;
  alignas(64) std::uint32_t writer_waits = 0;
  alignas(64) std::array<std::byte, kRingBytes> bytes;
};

struct RingMove {
  std::size_t count = 0;    // bytes that were moved
  bool wakes_peer = false;  // it left a note: ring its bell
};

class RingWriter {
 public:
  // The ring must outlive it.
  explicit RingWriter(SharedRing& ring) : ring_(ring) {}

  // Writes as many bytes as there is room for. Where these are fewer than `from` has, the peer
  // rings when there is more room. kPeer when the peer's side of the ring makes no sense.
  [[nodiscard]] Result<RingMove> write(std::span<const std::byte> from);

 private:
  [[nodiscard]] Result<std::size_t> room() const;

  SharedRing& ring_;
  std::uint64_t written_B_ = 0;
};

class RingReader {
 public:
  explicit RingReader(SharedRing& ring) : ring_(ring) {}

  // Reads as many bytes as there are. Where there are none, the peer rings when some come. Fails as
  // write().
  [[nodiscard]] Result<RingMove> read(std::span<std::byte> into);

 private:
  [[nodiscard]] Result<std::size_t> waiting() const;

  SharedRing& ring_;
  std::uint64_t taken_B_ = 0;
};

// Both directions of a pair.
class RingPair {
 public:
  static constexpr std::size_t kBytes = 2 * sizeof(SharedRing);

  // One end offers the memory, of kBytes, the other opened it.
  enum class End { kOffering, kOpening };

  RingPair(SharedMemory memory, End end);

  [[nodiscard]] RingWriter& writer() { return writer_; }

  [[nodiscard]] RingReader& reader() { return reader_; }

 private:
  [[nodiscard]] SharedRing& ring(std::size_t number) const;

  SharedMemory memory_;
  RingWriter writer_;
  RingReader reader_;
};

}  // namespace motley
