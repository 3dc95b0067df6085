// Accesses: what was done lately with one piece of memory, to find what two streams do to the same
// bytes without an order between them.
//
// Threads: the caller's lock.
#pragma once

#include <cstddef>
#include <vector>

#include "tests/support/far/vector_clock.h"

namespace motley::far {

struct Access {
  std::size_t begin = 0;  // of the piece
  std::size_t end = 0;
  Moment when;
  bool writes = false;
  const char* operation = "";  // lives as long as the process
};

class Accesses {
 public:
  // An earlier access that must come before `next` and, as far as `known` tells, may not; else
  // nullptr.
  [[nodiscard]] const Access* conflict(const Access& next, const VectorClock& known) const;

  // REQUIRES: `next` conflicts with none. `host` is what the host has waited for: nothing that is
  // given to a stream from now on can conflict with it.
  void add(const Access& next, const VectorClock& host);

 private:
  std::vector<Access> accesses_;
};

}  // namespace motley::far
