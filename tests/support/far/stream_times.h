// StreamTimes: when the streams' work is done, on the host's clock.
//
// An operation computes on the host when it is submitted, so its own time has passed by then. A
// slowed device adds a fixed time to each of its operations and copies, after all earlier work of
// its stream, while the host continues. Threads: the caller holds a lock.
#pragma once

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "tests/support/far/vector_clock.h"

namespace motley::far {

class StreamTimes {
 public:
  StreamTimes(int streams, double operation_s)
      : free_s_(static_cast<std::size_t>(streams)), operation_s_(operation_s) {}

  void set_operation_s(double operation_s) { operation_s_ = operation_s; }

  // Adds an operation or a copy to the stream.
  void give(StreamNumber stream) { of(stream) = reached_s(stream) + operation_s_; }

  // When all work that was submitted so far is done.
  [[nodiscard]] double reached_s(StreamNumber stream) { return std::max(of(stream), now_s()); }

  // The next work of the stream begins no earlier.
  void block_stream(StreamNumber stream, double until_s) {
    of(stream) = std::max(of(stream), until_s);
  }

 private:
  double& of(StreamNumber stream) { return free_s_[static_cast<std::size_t>(stream)]; }

  std::vector<double> free_s_;  // [StreamNumber]
  double operation_s_;
};

}  // namespace motley::far
