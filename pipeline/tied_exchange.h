// Who gives whom a gradient of the tied parameter (T).
//
// The two uses of a tied parameter are on the ranks of chunk 0 and of the last chunk. A rank that
// holds one of them needs the gradient of the other, from any of its replicas: after R they are
// equal. The i-th replica of one end takes it from the (i modulo n)-th of the n of the other, so
// that the work of giving is shared.
#pragma once

#include <optional>
#include <vector>

#include "base/ids.h"
#include "pipeline/action.h"

namespace motley {

struct TiedExchange {
  struct Gift {
    ChunkId end;  // whose gradient goes
    Rank to;
  };

  std::optional<Rank> from;  // who gives this rank what it lacks; nobody when it has both
  std::vector<Gift> gifts;
};

[[nodiscard]] TiedExchange tied_exchange(const Schedule& schedule, Rank self);

}  // namespace motley
