// SharedReduceBuffers: how the ranks of one machine hand each other the values of a sum without
// sending them. Each rank has a board, memory that its neighbours see
// (comm/transport/shared_memory.h). It writes values there once, tells by an empty message that
// they stand there, and the neighbours read them in place: one copy or two, where a message through
// a ring is copied four times and hashed twice.
//
// A board has slots as long as the longest bucket, in which a value has the place that it has in
// its bucket. Which slot is whose, and when it may be written again, is for the sum to know
// (allreduce_channel.cc). What stands on a board is not trusted and need not be: every pattern of
// bits is a float.
//
// Used by one thread.
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
#include "pipeline/reduce/allreduce_id.h"

namespace motley {

class SharedReduceBuffers {
 public:
  struct Form {
    std::size_t slots = 0;
    std::size_t slot_values = 0;
  };

  // Nobody's: everything is sent.
  SharedReduceBuffers() = default;

  // Agrees with the neighbours on who reads whose board in a sum. Each of them calls it with the
  // same form in the same step. A pair that cannot share memory after all goes on sending. kPeer
  // when a neighbour is lost or late, kCorrupt when it says what has no meaning.
  [[nodiscard]] static Result<SharedReduceBuffers> agree(FrameLink& link,
                                                         std::span<const Rank> neighbours,
                                                         const AllreduceId& sum,
                                                         std::int64_t step,
                                                         Form form,
                                                         Patience patience);

  // Whether the neighbour reads from this rank's board, and this rank from the neighbour's.
  [[nodiscard]] bool is_read_by(Rank neighbour) const { return readers_.contains(neighbour); }

  [[nodiscard]] bool reads(Rank neighbour) const { return theirs_.contains(neighbour); }

  // Whether anybody reads anybody's.
  [[nodiscard]] bool are_read() const { return !readers_.empty() || !theirs_.empty(); }

  // A slot of this rank's board. REQUIRES: somebody reads it.
  [[nodiscard]] std::span<float> own(std::size_t slot) const;

  // A slot of the neighbour's. REQUIRES: reads(neighbour).
  [[nodiscard]] std::span<const float> of(Rank neighbour, std::size_t slot) const;

 private:
  [[nodiscard]] std::span<float> slot_of(const SharedMemory& board, std::size_t slot) const;

  Form form_;
  std::optional<SharedMemory> own_;
  std::set<Rank> readers_;
  std::map<Rank, SharedMemory> theirs_;
};

}  // namespace motley
