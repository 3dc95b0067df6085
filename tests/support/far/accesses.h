// Accesses: the recent accesses to one block of memory, to detect unordered accesses of two
// streams to the same bytes.
//
// Threads: the caller holds a lock.
#pragma once

#include <cstddef>
#include <vector>

#include "tests/support/far/vector_clock.h"

namespace motley::far {

struct Access {
  std::size_t begin = 0;  // offset in the block
  std::size_t end = 0;
  Moment when;
  bool writes = false;
  const char* operation = "";  // static storage duration
};

class Accesses {
 public:
  // An earlier access that must happen before `next` but, according to `known`, is not ordered
  // before it; else nullptr.
  [[nodiscard]] const Access* conflict(const Access& next, const VectorClock& known) const;

  // REQUIRES: `next` conflicts with none. `host`: the clock of what the host has waited for; later
  // accesses cannot conflict with those.
  void add(const Access& next, const VectorClock& host);

 private:
  std::vector<Access> accesses_;
};

}  // namespace motley::far
