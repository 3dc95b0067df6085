// StreamTimes: when the streams get on, on the host's clock.
//
// An operation computes on the host when it is given and so has taken its time by then. A device
// that is made slow takes longer: each of its operations and copies takes so long once more, after
// all that its stream was given before, while the host goes on. Threads: the caller's lock.
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

  // The stream is given something.
  void give(StreamNumber stream) { of(stream) = reached_s(stream) + operation_s_; }

  // When it has done all that it was given so far.
  [[nodiscard]] double reached_s(StreamNumber stream) { return std::max(of(stream), now_s()); }

  // What it is given next begins no earlier.
  void hold_back(StreamNumber stream, double until_s) {
    of(stream) = std::max(of(stream), until_s);
  }

 private:
  double& of(StreamNumber stream) { return free_s_[static_cast<std::size_t>(stream)]; }

  std::vector<double> free_s_;  // [StreamNumber]
  double operation_s_;
};

}  // namespace motley::far
