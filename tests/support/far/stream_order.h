// StreamOrder: the happens-before order of the streams' work, given by events and by the host's
// waits.
//
// The host counts as one thread: what any of its threads waited for comes before all that any of
// them submits to a stream later. Threads: the caller holds a lock.
#pragma once

#include <vector>

#include "tests/support/far/vector_clock.h"

namespace motley::far {

class StreamOrder {
 public:
  explicit StreamOrder(int streams)
      : streams_(static_cast<std::size_t>(streams), VectorClock(streams)), host_(streams) {}

  // Registers a submission to the stream; returns its moment.
  Moment give(StreamNumber stream) {
    VectorClock& clock = of(stream);
    clock.join(host_);
    return clock.next(stream);
  }

  // The clock of all that precedes the stream's next submission.
  [[nodiscard]] VectorClock known_to(StreamNumber stream) {
    of(stream).join(host_);
    return of(stream);
  }

  void block_stream(StreamNumber stream, const VectorClock& mark) { of(stream).join(mark); }

  void host_waited_for(const VectorClock& mark) { host_.join(mark); }

  [[nodiscard]] const VectorClock& known_to_host() const { return host_; }

 private:
  VectorClock& of(StreamNumber stream) { return streams_[static_cast<std::size_t>(stream)]; }

  std::vector<VectorClock> streams_;  // [StreamNumber]
  VectorClock host_;
};

}  // namespace motley::far
