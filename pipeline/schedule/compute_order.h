// ComputeOrder: the progress of each rank in each of its chunks while a schedule is interpreted
// without computing. Each rank runs its micro-batches of a chunk in order, in forwards, backwards
// and weight parts, so that sums have one order and results do not depend on the schedule.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "pipeline/schedule/action.h"
#include "pipeline/schedule/check_result.h"

namespace motley {

class ComputeOrder {
 public:
  // training: with backwards.
  ComputeOrder(const Schedule& schedule, bool training);

  // Checks that an F, B, BI or BW on its owner is next in order.
  [[nodiscard]] CheckResult check(Rank here, const Action& action) const;

  // Records that it ran.
  void pass(Rank here, const Action& action);

  // The computing that the rank has not done yet; nullopt if none is left.
  [[nodiscard]] std::optional<std::string> missing(Rank here) const;

  // [ChunkId] The most micro-batches that a replica holds at once: between forward and backward,
  // and between the two parts of backward.
  [[nodiscard]] const std::vector<int>& peak_in_flight() const { return peak_in_flight_; }

  [[nodiscard]] const std::vector<int>& peak_queued_weights() const { return peak_queued_weights_; }

 private:
  // One rank's progress in one chunk.
  struct Share {
    std::vector<MicroId> micros;
    std::size_t forwards = 0;   // finished
    std::size_t backwards = 0;  // finished, at least their input parts
    std::size_t weights = 0;    // finished weight parts, also those of whole backwards
  };

  [[nodiscard]] static CheckResult check_order(const Share& share, std::size_t done, MicroId micro);

  const bool training_;
  std::vector<std::map<ChunkId, Share>> shares_;  // [Rank]
  std::vector<std::size_t> to_compute_;           // [Rank] its remaining F and halves of B
  std::vector<int> peak_in_flight_;
  std::vector<int> peak_queued_weights_;
};

}  // namespace motley
