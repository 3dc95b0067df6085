// OuterOptimizer: the outer optimizer of rounds of local training (plan/rounds/rounds_plan.h) for
// the parameters of one rank: SGD with Nesterov momentum on the mean pseudo-gradient.
//
//   pseudo-gradient of an island = its share of the round's tokens * (anchor - parameters)
//   mean     = the sum over all islands
//   velocity = momentum velocity + mean
//   anchor   = anchor - rate (mean + momentum velocity)
//
// Where steps lie between offer and adoption, an island goes on from the anchor that it would get
// if all others had offered the same as it does (eager updates, arXiv:2502.12996), and keeps what
// it trains there:
//
//   at the offer:    parameters = expected anchor
//   at the adoption: parameters = anchor + (parameters - expected anchor)
//
// Its next pseudo-gradient contains these steps: over all rounds each step is counted once.
//
// Of each island the first copy of a parameter contributes, and all others contribute 0, so sums do
// not depend on how an island divides the model. Statistics such as a running mean are averaged
// instead, without the steps since the offer: a variance must not become negative. Anchor,
// velocity, pseudo-gradients and expected anchors lie in host memory, in fp32. Used by the compute
// thread alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "compression/feedback/gradient_compressor.h"
#include "pipeline/execute/stage_rounds.h"
#include "pipeline/schedule/copy_groups.h"
#include "run_config/config.h"
#include "training/stage_state.h"

namespace motley {

class OuterOptimizer final : public StageRounds {
 public:
  struct Rule {
    double lr = 0;
    double momentum = 0;
    bool overlaps = false;  // steps lie between offers and adoptions
  };

  // `train`: of the inner optimizer. `computes_start`: this rank's island computes the start alone.
  // `tied_across_ranks`: several ranks hold a use of the tied parameter. `share`: this rank's
  // island's share of the round's tokens. `before_change` is called before the state or a view of
  // the functions below changes. All references must outlive this object.
  OuterOptimizer(StageState& state,
                 const TrainConfig& train,
                 bool tied_across_ranks,
                 bool computes_start,
                 Rule rule,
                 std::function<double()> share,
                 std::function<void()> before_change);

  void begin_round() override;
  void offer() override;
  std::span<float> pseudo_gradients(ChunkId chunk) override;
  std::span<float> tied_pseudo_gradient() override;
  void adopt() override;

  // The parameters, then each moment: as many as any parameter of the model has, so that all ranks
  // send equally many.
  [[nodiscard]] int start_arrays() const override { return start_arrays_; }

  void offer_start(int array) override;
  void adopt_start(int array) override;

  // Hash of the anchor of the group's parameters; equal on all ranks of the group. nullopt before
  // the first round, and without overlap, where the parameters begin each round as the anchor.
  [[nodiscard]] std::optional<std::uint64_t> anchor_hash(const CopyGroup& group);

  // With overlap, exchanges parameters and anchor, for an evaluation of the anchor; a second call
  // exchanges them back. REQUIRES: no offer is outstanding.
  void exchange_anchor();

  // With overlap, the anchor's first copies, as a checkpoint's parameters.
  [[nodiscard]] std::vector<TensorView> anchor_views();
  // What a checkpoint holds beside the anchor, which without overlap is the parameters: velocities
  // of first copies as "outer_momentum/NAME", as residuals of this rank what `add_feedback` adds to
  // the pseudo-gradients and, with overlap, parameters of counted copies as
  // "local.island.NUMBER/NAME". Valid until before_change is called. REQUIRES: no offer is
  // outstanding.
  [[nodiscard]] std::vector<TensorView> save_views(const std::function<void()>& add_feedback);
  // Reads the velocities, the residuals into the pseudo-gradients and, in a round with overlap, the
  // parameters of this rank's island, if there are any. Returns whose residuals these are: this
  // rank's own if the checkpoint has as many members, else the totals of all. REQUIRES: the reader
  // has a manifest; the state has the parameters; before the first step.
  [[nodiscard]] Result<FeedbackScope> load(const CheckpointReader& reader, bool in_round);

 private:
  struct Part {
    StageState::Updated parameter;
    std::size_t first = 0;  // of its values in the group's
    std::size_t count = 0;
  };

  // The parameters of one all-reduce, one after another.
  struct Group {
    std::vector<Part> parts;
    std::vector<float> anchor;
    std::vector<float> velocity;
    std::vector<float> pseudo_gradient;
    std::vector<float> expected;  // anchor, since the last offer; empty without overlap

    void add(const StageState::Updated& parameter, bool overlaps);
    [[nodiscard]] std::span<float> anchor_of(const Part& part);
    [[nodiscard]] std::span<float> pseudo_gradient_of(const Part& part);
    [[nodiscard]] std::span<float> expected_of(const Part& part);
  };

  void write_offer(Group& group, const Part& part, float share);
  void continue_alone(Group& group, const Part& part);
  void update(Group& group, const Part& part);
  // Takes the updated anchor over as parameters.
  void take_over(Group& group, const Part& part);
  Result<void> load_local(const CheckpointReader& reader);
  [[nodiscard]] std::vector<Group*> groups();

  StageState& state_;
  const int start_arrays_;
  const bool computes_start_;
  const Rule rule_;
  const std::function<double()> share_;
  const std::function<void()> before_change_;
  std::map<ChunkId, Group> chunks_;
  Group tied_;  // empty unless the tied parameter has an all-reduce of its own
  bool has_anchor_ = false;
};

}  // namespace motley
