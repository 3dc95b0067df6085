// SharedReduceBuffers: shared memory by which the ranks of one machine exchange the values of an
// all-reduce without sending them. Each rank owns a buffer that its neighbours, the other ranks of
// the machine, map (comm/transport/shared_memory.h). It writes values there once and sends an empty
// message; the neighbours read them in place. This takes one or two copies; a message through a
// ring is copied four times and hashed twice.
//
// A buffer has slots as long as the longest bucket; a value's offset in a slot is that in its
// bucket. AllreduceChannel assigns the slots and decides when they may be written again
// (allreduce_channel.cc). Contents are untrusted and need no check: every bit pattern is a float.
//
// Owns its own buffer and the mappings of the others. Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "comm/frames/frame_link.h"
#include "comm/transport/shared_memory.h"
#include "pipeline/collectives/allreduce_id.h"

namespace motley {

class SharedReduceBuffers {
 public:
  struct Layout {
    std::size_t slots = 0;
    std::size_t slot_values = 0;  // floats in a slot
  };

  // Shares nothing: all values are sent.
  SharedReduceBuffers() = default;

  // Agrees with the neighbours, for the all-reduce `id`, on which buffers are mapped. Every
  // neighbour calls it with the same id, layout and step. Where mapping fails, values of that
  // direction of the pair are sent as before; this is no error. kPeer if a neighbour is lost or
  // late, kCorrupt if its message is malformed.
  [[nodiscard]] static Result<SharedReduceBuffers> agree(FrameLink& link,
                                                         std::span<const Rank> neighbours,
                                                         const AllreduceId& id,
                                                         std::int64_t step,
                                                         Layout layout,
                                                         StallTimeout stall_timeout);

  // Whether the neighbour reads this rank's buffer, and whether this rank reads the neighbour's.
  [[nodiscard]] bool is_read_by(Rank neighbour) const { return readers_.contains(neighbour); }

  [[nodiscard]] bool reads(Rank neighbour) const { return opened_.contains(neighbour); }

  // Whether this rank reads a neighbour's buffer or a neighbour reads this rank's.
  [[nodiscard]] bool are_used() const { return !readers_.empty() || !opened_.empty(); }

  // A slot of this rank's buffer. REQUIRES: is_read_by() some neighbour.
  [[nodiscard]] std::span<float> own(std::size_t slot) const;

  // A slot of the neighbour's buffer. REQUIRES: reads(neighbour).
  [[nodiscard]] std::span<const float> of(Rank neighbour, std::size_t slot) const;

 private:
  [[nodiscard]] std::span<float> slot_of(const SharedMemory& buffer, std::size_t slot) const;

  Layout layout_;
  std::optional<SharedMemory> own_;
  std::set<Rank> readers_;               // neighbours that opened own_
  std::map<Rank, SharedMemory> opened_;  // buffers of neighbours
};

}  // namespace motley
