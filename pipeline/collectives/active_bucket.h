// ActiveBucket: a bucket of an all-reduce whose messages are in flight.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "base/ids.h"
#include "comm/frames/frame_link.h"
#include "pipeline/schedule/bucket_role.h"

namespace motley {

struct ActiveBucket {
  struct Incoming {
    const ExpectedMessage* expected = nullptr;
    PendingFrame frame;  // valid until it was received
    Buffer buffer;       // valid from then on
  };

  struct Outgoing {
    Pending pending;
    Rank to;
  };

  std::size_t bucket = 0;
  std::size_t phase = 0;  // whose messages it waits for; kReducePhases: only its sends are left
  std::array<std::vector<Incoming>, kReducePhases> incoming;  // [ReducePhase]
  std::vector<Outgoing> outgoing;

  [[nodiscard]] bool is_done() const { return phase == kReducePhases && outgoing.empty(); }

  // Whether all messages of the phase have arrived. REQUIRES: phase < kReducePhases.
  [[nodiscard]] bool all_received() const;

  // A rank that it waits for. REQUIRES: !is_done().
  [[nodiscard]] Rank awaited_rank() const;

  // "reduce-scatter between machines", for errors.
  [[nodiscard]] const char* phase_text() const;
};

}  // namespace motley
