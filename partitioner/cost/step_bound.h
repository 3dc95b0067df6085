// StepBound: what no simulated step of a candidate is shorter than, from a closed form. Most
// changes of a good plan are longer than it, and this tells so for many of them without a schedule.
//
// A slot begins no sooner than the first micro-batch can have come to it, then has its own work to
// do, and from the last gradient that it hands on there is a way to the first stage. The same holds
// for a link. Behind it come the sum of a tied gradient and, once all ranks have voted, the update.
#pragma once

#include <vector>

#include "partitioner/cost/search_space.h"
#include "partitioner/cost/step_estimate.h"

namespace motley {

class StepBound {
 public:
  // Of the estimate's shape, codecs and gradient codec. It must outlive the bound.
  explicit StepBound(const StepEstimate& estimate) : estimate_(estimate) {}

  // REQUIRES: the candidate has its shares, and whether its stages recompute.
  [[nodiscard]] double least_s(const Candidate& candidate) const;

 private:
  // Of the micro-batch for which each takes least, whichever slots of the stages have it.
  struct Stage {
    int first = 0;
    int last = 0;
    double forward_s = 0;
    double backward_s = 0;  // until the gradient of the input is there
    // Of the boundary behind it, 0 where a slot of this stage has the next one too.
    double send_s = 0;          // an activation
    double way_s = 0;           // of that
    double receive_s = 0;       // at the next stage
    double back_send_s = 0;     // the gradient that the next stage sends
    double back_way_s = 0;      // of that
    double back_receive_s = 0;  // at this stage
    double load_s = 0;          // of way_s, what occupies a link that all micro-batches take
    double back_load_s = 0;

    [[nodiscard]] double hop_s() const { return send_s + way_s + receive_s; }

    [[nodiscard]] double back_hop_s() const { return back_send_s + back_way_s + back_receive_s; }
  };

  [[nodiscard]] std::vector<Stage> stages_of(const Candidate& candidate) const;
  void add_boundary(const StageChoice& front, const StageChoice& behind, Stage& stage) const;
  // Until the last gradient has come to the first stage and through it, by the links and by how
  // many micro-batches may be under way.
  [[nodiscard]] double ways_s(const Candidate& candidate, const std::vector<Stage>& stages) const;
  [[nodiscard]] double tied_s(const Candidate& candidate) const;

  const StepEstimate& estimate_;
};

}  // namespace motley
