// A byte stream between two processes through shared memory: one ring for each direction, with one
// writer and one reader, each used by one thread at a time. Neither end blocks here: an end that
// finds the ring empty, or full, sets a wait flag in it, and the other end must then wake it
// through the caller's notification (comm/tcp/tcp_stream.h: a byte on the socket that connects the
// two).
//
// The other end is not trusted: its values in a ring are checked before use, and bytes are copied
// out before they are interpreted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "comm/transport/shared_memory.h"

namespace motley {

// Large enough that the ends rarely wait for each other, small enough for the caches.
inline constexpr std::size_t kRingBytes = std::size_t{2} << 20;

// SharedRing's layout is that of the shared memory, which starts as zeros. Each end writes its own
// cache lines.
struct SharedRing {
  alignas(64) std::uint64_t written_B = 0;  // bytes since the start; set by the writer
  alignas(64) std::uint64_t taken_B = 0;    // set by the reader
  alignas(64) std::uint32_t reader_waits = 0;
  alignas(64) std::uint32_t writer_waits = 0;
  alignas(64) std::array<std::byte, kRingBytes> bytes;
};

struct RingMove {
  std::size_t count = 0;    // bytes moved
  bool wakes_peer = false;  // the peer's wait flag was set: notify it
};

class RingWriter {
 public:
  // The ring must outlive the writer.
  explicit RingWriter(SharedRing& ring) : ring_(ring) {}

  // Writes as many bytes as fit. If `from` has more, the peer notifies when there is space again.
  // kPeer if the peer's position is invalid.
  [[nodiscard]] Result<RingMove> write(std::span<const std::byte> from);

 private:
  [[nodiscard]] Result<std::size_t> space() const;

  SharedRing& ring_;
  std::uint64_t written_B_ = 0;
};

class RingReader {
 public:
  explicit RingReader(SharedRing& ring) : ring_(ring) {}

  // Reads the available bytes. If there are none, the peer notifies when some arrive. Errors as
  // write().
  [[nodiscard]] Result<RingMove> read(std::span<std::byte> into);

 private:
  [[nodiscard]] Result<std::size_t> waiting() const;

  SharedRing& ring_;
  std::uint64_t taken_B_ = 0;
};

// Both directions of a connection.
class RingPair {
 public:
  static constexpr std::size_t kBytes = 2 * sizeof(SharedRing);

  // One end offers the memory, of kBytes; the other opened it.
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
