// StepBound: a closed-form lower bound of a candidate's simulated step. Most changes to a good plan
// make it longer; for many of them the bound shows this without a schedule.
//
// A slot begins no earlier than the first micro-batch can arrive, then has its own work, and its
// last gradient still has to travel to the first stage. The same holds for a link. The all-reduce
// of a tied gradient and, after the vote, the update follow.
#pragma once

#include <vector>

#include "partitioner/cost/search_space.h"
#include "partitioner/cost/step_estimate.h"

namespace motley {

class StepBound {
 public:
  // Uses the estimate's shape, codecs and gradient codec. It must outlive the bound.
  explicit StepBound(const StepEstimate& estimate) : estimate_(estimate) {}

  // REQUIRES: the candidate's shares and recompute are set.
  [[nodiscard]] double least_s(const Candidate& candidate) const;

 private:
  // Least values over the micro-batches and the slots of the stages.
  struct Stage {
    int first = 0;
    int last = 0;
    double forward_s = 0;
    double backward_s = 0;  // until the gradient of the input is ready
    // Over the boundary behind it; 0 if a slot of this stage also has the next one.
    double send_s = 0;          // an activation
    double path_s = 0;          // its transfer
    double receive_s = 0;       // at the next stage
    double back_send_s = 0;     // the gradient that the next stage sends
    double back_path_s = 0;     // its transfer
    double back_receive_s = 0;  // at this stage
    double load_s = 0;          // the part of path_s on a link that all micro-batches use
    double back_load_s = 0;

    [[nodiscard]] double transfer_path_s() const { return send_s + path_s + receive_s; }

    [[nodiscard]] double back_transfer_path_s() const {
      return back_send_s + back_path_s + back_receive_s;
    }
  };

  [[nodiscard]] std::vector<Stage> stages_of(const Candidate& candidate) const;
  void add_boundary(const StageChoice& front, const StageChoice& behind, Stage& stage) const;
  // Until the last gradient has passed the first stage, bounded by the links and by the limit of
  // micro-batches in flight.
  [[nodiscard]] double paths_s(const Candidate& candidate, const std::vector<Stage>& stages) const;
  [[nodiscard]] double tied_s(const Candidate& candidate) const;

  const StepEstimate& estimate_;
};

}  // namespace motley
