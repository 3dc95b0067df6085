// The closed estimate of a step that the searches minimise (docs/algorithms.md, "The estimate"):
//
//   estimate = S + (m - 1) P + tied
//   S = sum of work + 2 x sum of hops along the pipeline
//   P = the period: the largest of each stage's busy time, each device's traffic and, in 1F1B, the
//       round trip below the limit of micro-batches in flight, all per micro-batch.
//
// It is built from the last stage backwards; S and P only grow when a stage is put in front.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "partitioner/cost/search_space.h"
#include "partitioner/cost/stage_table.h"

namespace motley {

// How a stage's micro-batches are dealt to its slots, and whether it recomputes.
struct StageFit {
  std::vector<int> shares;  // [of slots]
  bool recompute = false;
};

// The stages from one stage to the end of the model.
struct Tail {
  double sum_s = 0;     // S so far
  double period_s = 0;  // P so far
  double load_s =
      0;  // of the front stage's network, per micro-batch: traffic with the stage behind
};

// The front stage of a tail, as the next stage in front of it sees it.
struct Front {
  std::span<const int> slots;
  int codec = 0;  // of the boundary before it
};

class StepEstimate {
 public:
  // Both must outlive it.
  StepEstimate(const StageTable& table, const SearchSpace& space);

  [[nodiscard]] const StageTable& table() const { return table_; }

  [[nodiscard]] const SearchSpace& space() const { return space_; }

  // Whether pins let the slot hold the layers.
  [[nodiscard]] bool allows(int slot, int first, int last) const;

  // nullopt when the layers do not fit, a pin forbids it, or a replica would get nothing to do.
  // depth: of the stage, counted from the end of the model (the last is 1).
  [[nodiscard]] std::optional<StageFit> fit(std::span<const int> slots,
                                            int first,
                                            int last,
                                            int depth) const;

  // The last stage. codec_before: of the boundary before it (not used when first == 0).
  [[nodiscard]] Tail last_stage(std::span<const int> slots,
                                const StageFit& fit,
                                int first,
                                int codec_before) const;
  // The stage [first, last) put in front of a tail that begins at `last`.
  [[nodiscard]] Tail prepend(std::span<const int> slots,
                             const StageFit& fit,
                             int first,
                             int last,
                             int codec_before,
                             int depth,
                             const Tail& tail,
                             const Front& front) const;

  // S + (m - 1) P: of a whole pipeline, or a lower bound for all that end in this tail.
  [[nodiscard]] double step_s(const Tail& tail) const {
    return tail.sum_s + (table_.shape().micro_batches - 1) * tail.period_s;
  }

  // What the ends of the pipeline exchange at the end of a step.
  [[nodiscard]] double tied_s(std::span<const int> first_slots,
                              std::span<const int> last_slots) const;

  // Fills shares, recompute, estimate_s and period_s from slots, first layers and codecs. False
  // when a stage does not fit or a pin forbids the candidate.
  [[nodiscard]] bool rate(Candidate& candidate) const;

 private:
  [[nodiscard]] std::vector<int> deal(std::span<const int> slots,
                                      int first,
                                      int last,
                                      bool recompute) const;
  [[nodiscard]] bool uses_all_it_must(const Candidate& candidate) const;
  [[nodiscard]] double crossing_s(int slot, int boundary, int codec) const;

  struct Hop {
    double transfer_s = 0;  // one way
    double load_s = 0;      // of that, what occupies the link
    bool remote = false;    // between machines
  };

  [[nodiscard]] Hop hop(std::span<const int> from,
                        std::span<const int> to,
                        int boundary,
                        int codec) const;
  [[nodiscard]] double round_trip_share(int depth, int replicas) const;

  // Work and busy time of a stage with what it does for its boundaries.
  struct StageTime {
    double work_s = 0;
    double busy_s = 0;
  };

  [[nodiscard]] StageTime stage_time(std::span<const int> slots,
                                     const StageFit& fit,
                                     int first,
                                     int last,
                                     int codec_before,
                                     int codec_behind) const;

  const StageTable& table_;
  const SearchSpace& space_;
  std::vector<std::vector<int>>
      forbidden_before_;  // [slot][layer] layers before it that it may not hold
};

}  // namespace motley
