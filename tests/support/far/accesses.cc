#include "tests/support/far/accesses.h"

#include <algorithm>

namespace motley::far {
namespace {

bool overlap(const Access& a, const Access& b) {
  return a.begin < b.end && b.begin < a.end;
}

// Whether every later access that conflicts with `earlier` conflicts with `next` as well.
bool stands_for(const Access& next, const Access& earlier) {
  if (earlier.begin < next.begin || earlier.end > next.end) return false;
  return next.writes || (!earlier.writes && earlier.when.stream == next.when.stream);
}

}  // namespace

const Access* Accesses::conflict(const Access& next, const VectorClock& known) const {
  const auto found = std::find_if(accesses_.begin(), accesses_.end(), [&](const Access& earlier) {
    return (earlier.writes || next.writes) && overlap(earlier, next) &&
           earlier.when.stream != next.when.stream && !known.covers(earlier.when);
  });
  return found == accesses_.end() ? nullptr : &*found;
}

void Accesses::add(const Access& next, const VectorClock& host) {
  std::erase_if(accesses_, [&](const Access& earlier) {
    return host.covers(earlier.when) || stands_for(next, earlier);
  });
  accesses_.push_back(next);
}

}  // namespace motley::far
