// The closed estimate of a step that the searches minimise (docs/algorithms.md, "The estimate"):
//
//   estimate = S + (m - 1) P + tied
//   S = sum of work + 2 x sum of hops along the pipeline
//   P = the period: the largest of each stage's busy time, each device's traffic and, in 1F1B, the
//       round trip below the limit of micro-batches in flight, all per micro-batch.
//
// It is built from the last stage backwards; S and P only grow when a stage is prepended.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "partitioner/cost/boundary_prices.h"
#include "partitioner/cost/search_space.h"
#include "partitioner/cost/stage_table.h"

namespace motley {

struct ShapedCandidate {
  StepShape shape;
  Candidate candidate;
};

// The batch split of a stage over its slots, and whether it recomputes.
struct StageFit {
  std::vector<int> batch_split;  // [of slots]
  bool recompute = false;
};

// The stages from one stage to the end of the model.
struct Tail {
  double sum_s = 0;     // S so far
  double period_s = 0;  // P so far
  double load_s = 0;  // of the front stage's network, per micro-batch: traffic with the next stage
};

// One of a stage's slots.
struct SlotWork {
  int slot = 0;
  double share = 0;  // of the micro-batches
  double pass_s = 0;
  double end_s = 0;  // of its work once a step, per micro-batch
};

struct StageWork {
  std::vector<SlotWork> slots;
  int first = 0;
  int last = 0;
};

// Per micro-batch.
struct StageTime {
  double work_s = 0;  // its part of S
  double busy_s = 0;  // the longest of its slots
};

struct StageTransfer {
  double transfer_s = 0;  // one way
  double load_s = 0;      // the part that occupies the link
  bool remote = false;    // between machines
};

class StepEstimate {
 public:
  // Both must outlive it.
  StepEstimate(const StageTable& table, const SearchSpace& space);

  [[nodiscard]] const StageTable& table() const { return table_; }

  [[nodiscard]] const SearchSpace& space() const { return space_; }

  [[nodiscard]] const BoundaryPrices& prices() const { return prices_; }

  // Whether pins allow these slots, as one stage, to hold the layers.
  [[nodiscard]] bool allows(std::span<const int> slots, int first, int last) const;

  // The batch split of the stage, with forward once or twice. nullopt if a pin or the space forbids
  // it, or a replica would have no micro-batch; memory is not checked.
  [[nodiscard]] std::optional<StageFit> split_fit(std::span<const int> slots,
                                                  int first,
                                                  int last,
                                                  bool recompute) const;
  // Whether they have enough memory with that many micro-batches in flight in the stage.
  [[nodiscard]] bool fits(
      std::span<const int> slots, const StageFit& fit, int first, int last, int in_flight) const;
  // The first of these that fits; nullopt if none does.
  [[nodiscard]] std::optional<StageFit> fit(std::span<const int> slots,
                                            int first,
                                            int last,
                                            int in_flight) const;

  // A stage's work for its layers, independent of its neighbours.
  [[nodiscard]] StageWork work(std::span<const int> slots,
                               const StageFit& fit,
                               int first,
                               int last) const;
  // The same with the work for its boundaries. A codec is ignored if there is no boundary.
  [[nodiscard]] StageTime time(const StageWork& work, int codec_before, int codec_behind) const;
  // Between two stages, over the boundary behind the layer.
  [[nodiscard]] StageTransfer stage_transfer(std::span<const int> from,
                                             std::span<const int> to,
                                             int boundary,
                                             int codec) const;
  // The limit of micro-batches in flight bounds the period from below by this share of S, taken
  // from a stage to the end.
  [[nodiscard]] double round_trip_share(int in_flight) const;

  [[nodiscard]] static Tail last_stage(const StageTime& time) {
    return {time.work_s, time.busy_s, 0};
  }

  // Prepends a stage to a tail. round_trip_share: of the stage.
  [[nodiscard]] static Tail prepend(const StageTime& time,
                                    const StageTransfer& stage_transfer,
                                    double round_trip_share,
                                    const Tail& tail) {
    Tail result;
    result.sum_s = tail.sum_s + time.work_s + 2 * stage_transfer.transfer_s;
    result.load_s = stage_transfer.remote ? stage_transfer.load_s : 0;
    // The next stage's device has this traffic in addition to that with the stage behind it.
    const double behind_load_s =
        stage_transfer.remote ? tail.load_s + stage_transfer.load_s : stage_transfer.load_s;
    result.period_s =
        std::max({tail.period_s, time.busy_s, behind_load_s, result.sum_s * round_trip_share});
    return result;
  }

  // S + (m - 1) P: for a whole pipeline, or a lower bound for all that end in this tail.
  [[nodiscard]] double step_s(const Tail& tail) const {
    return tail.sum_s + (table_.shape().micro_batches - 1) * tail.period_s;
  }

  // The exchange of the pipeline's ends at the end of a step.
  [[nodiscard]] double tied_s(std::span<const int> first_slots,
                              std::span<const int> last_slots) const;

  // Sets shares, recompute, estimate_s and period_s from slots, first layers and codecs. False if a
  // stage does not fit or a pin forbids the candidate.
  [[nodiscard]] bool rate(Candidate& candidate) const;
  // The same for a candidate with given shares, which are not changed. Pins are not checked.
  [[nodiscard]] bool rate_with_split(Candidate& candidate) const;

  [[nodiscard]] bool obeys_pins(const Candidate& candidate) const;

 private:
  // The duration of the pass that makes the gradients of these layers final.
  [[nodiscard]] double last_backward_s(int slot, int first, int last) const;
  [[nodiscard]] std::vector<int> split_batch(std::span<const int> slots,
                                             int first,
                                             int last,
                                             bool recompute) const;

  [[nodiscard]] bool may_recompute(bool recompute) const {
    return space_.recompute == Recompute::kAuto ||
           recompute == (space_.recompute == Recompute::kAlways);
  }

  [[nodiscard]] bool uses_required_slots(const Candidate& candidate) const;
  template <typename FitOf>
  [[nodiscard]] bool rate(Candidate& candidate, const FitOf& fit_of) const;
  const StageTable& table_;
  const SearchSpace& space_;
  BoundaryPrices prices_;
  std::vector<int> pinned_layers_;  // ascending
};

// [stage] The number of micro-batches that may be between forward and backward in each, on all its
// replicas.
[[nodiscard]] std::vector<int> in_flight_of(const std::vector<StageChoice>& stages,
                                            const StepShape& shape);

}  // namespace motley
