// VectorClock: for each stream, how much of its work is known to be done before a certain point.
//
// Moments are counted per stream. A stream's own clock says which moments of all streams come
// before its next submission; an event stores the clock of when it was recorded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace motley::far {

// Streams of all devices share one numbering.
using StreamNumber = int;

struct Moment {
  StreamNumber stream = 0;
  std::uint64_t tick = 0;
};

class VectorClock {
 public:
  explicit VectorClock(int streams) : ticks_(static_cast<std::size_t>(streams)) {}

  [[nodiscard]] Moment next(StreamNumber stream) { return {stream, ++at(stream)}; }

  [[nodiscard]] bool covers(const Moment& moment) const {
    return ticks_[static_cast<std::size_t>(moment.stream)] >= moment.tick;
  }

  [[nodiscard]] bool covers(const VectorClock& other) const {
    return std::equal(ticks_.begin(), ticks_.end(), other.ticks_.begin(), std::greater_equal<>());
  }

  void join(const VectorClock& other) {
    for (std::size_t i = 0; i < ticks_.size(); ++i) {
      ticks_[i] = std::max(ticks_[i], other.ticks_[i]);
    }
  }

 private:
  std::uint64_t& at(StreamNumber stream) { return ticks_[static_cast<std::size_t>(stream)]; }

  std::vector<std::uint64_t> ticks_;  // [StreamNumber]
};

}  // namespace motley::far
