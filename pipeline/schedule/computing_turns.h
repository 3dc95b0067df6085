// ComputingTurns: how far each rank has come with each of its chunks while a schedule is run
// without computing. Each rank takes its micro-batches of a chunk in their order, forward, backward
// and in weight parts, so that sums have one order and results do not depend on the schedule.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "pipeline/schedule/action.h"
#include "pipeline/schedule/verdict.h"

namespace motley {

class ComputingTurns {
 public:
  // training: with backwards.
  ComputingTurns(const Schedule& schedule, bool training);

  // Whether it is the turn of an F, B, BI or BW on its owner.
  [[nodiscard]] Verdict check(Rank here, const Action& action) const;

  // Notes that it ran.
  void pass(Rank here, const Action& action);

  // What the rank has still to compute; nothing when it is through.
  [[nodiscard]] std::optional<std::string> missing(Rank here) const;

  // [ChunkId] The most micro-batches at once, of the replica that holds most: between forward and
  // backward, and between the two parts of backward.
  [[nodiscard]] const std::vector<int>& peak_in_flight() const { return peak_in_flight_; }

  [[nodiscard]] const std::vector<int>& peak_queued_weights() const { return peak_queued_weights_; }

 private:
  // What one rank has of one chunk.
  struct Share {
    std::vector<MicroId> micros;
    std::size_t forwards = 0;   // finished
    std::size_t backwards = 0;  // finished, at least their input parts
    std::size_t weights = 0;    // finished weight parts, also those of whole backwards
  };

  [[nodiscard]] static Verdict check_turn(const Share& share, std::size_t done, MicroId micro);

  const bool training_;
  std::vector<std::map<ChunkId, Share>> shares_;  // [Rank]
  std::vector<std::size_t> to_compute_;           // [Rank] its F and halves of B to come
  std::vector<int> peak_in_flight_;
  std::vector<int> peak_queued_weights_;
};

}  // namespace motley
