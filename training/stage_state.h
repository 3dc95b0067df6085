// StageState: the parameters, gradients and optimizer moments that one rank holds.
//
// Keyed by parameter name, so that any plan can load what any other plan saved. A tied parameter is
// owned by the layer that comes first; its other use has values and a gradient of its own. If both
// uses are on this rank, the owner is updated and copied to the use. If several ranks hold a use,
// each is updated with the same all-reduced gradient, and the copies stay bit-identical.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/progress_counter.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/residual_name.h"
#include "compression/feedback/gradient_compressor.h"
#include "models/spec/model_spec.h"
#include "pipeline/execute/stage_gradients.h"
#include "training/memory/host_memory.h"
#include "training/memory/state_memory.h"
#include "training/optimizer/optimizer.h"
#include "training/optimizer/parameter_rules.h"
#include "training/vote/optimized_state.h"
#include "training/vote/vote.h"

namespace motley {

// A parameter of a chain of layers. The spans are views into the chain's arenas, or empty if these
// lie in a device's own memory.
struct HeldParameter {
  int layer = 0;  // in the model
  // Of equal copies on several ranks, the one that is saved.
  bool is_first = true;
  // The rank's member number in the gradient's all-reduce (plan/gradient_group.h), and the number
  // of its members.
  int member = 0;
  int members = 1;
  // Of an island's copies (plan/rounds/rounds_plan.h), the one that is counted in norms; without
  // rounds as is_first.
  bool is_counted = true;
  int island = 0;  // of this rank
  bool corrected =
      false;  // with momentum correction (training/momentum_correction/corrected_allreduces.h)
  ParameterSpec spec;
  std::span<float> values;
  std::span<float> gradients;
  ParameterRule rule = {};
};

struct HeldChunk {
  ChunkId chunk;
  std::span<float> reduced_gradients;  // as StageGradients::gradients()
  std::vector<HeldParameter> parameters;
  // The layers that this rank votes for, ascending: those of which it holds the first copy of its
  // island, also without parameters.
  std::vector<int> voted_layers;
};

// The state's memory in the spans of `held`, which must outlive it. `in_parts`: as in HostMemory.
[[nodiscard]] std::unique_ptr<StateMemory> host_memory(const std::vector<HeldChunk>& held,
                                                       std::unique_ptr<const Optimizer> optimizer,
                                                       InParts in_parts = in_one_part);

class StageState final : public StageGradients, public OptimizedState {
 public:
  // `held`: in the order of the layers. `memory` holds its parameters, numbered in their order over
  // all chunks. `tied_parameter`: the model's, "" = none. `micro_batches`: of a step, over all
  // replicas; statistics are the mean over them. `ema`: train.ema, the decay of the average of each
  // parameter that this rank saves; it begins as the initial values. 0 = none.
  StageState(const std::vector<HeldChunk>& held,
             std::unique_ptr<StateMemory> memory,
             std::string tied_parameter,
             int micro_batches = 1,
             double ema = 0);
  // The same with the memory of `held`, whose spans must outlive the state.
  StageState(const std::vector<HeldChunk>& held,
             std::unique_ptr<const Optimizer> optimizer,
             std::string tied_parameter,
             int micro_batches = 1);

  // Bytes of the values that this rank holds, and of values, moments and averages.
  [[nodiscard]] std::uint64_t value_bytes() const;
  [[nodiscard]] std::uint64_t saved_bytes() const;

  // Initial values, as a function of seed and name. `work` counts their bytes.
  [[nodiscard]] Result<void> initialize(std::int64_t seed, ProgressCounter& work);
  // Reads values by name from initial weights. kCorrupt if one is absent or has another shape;
  // kData, naming it, if it holds an infinity or a NaN.
  [[nodiscard]] Result<void> load_values(const CheckpointReader& reader);
  // Reads the optimizer's moments, and averages that the checkpoint has.
  [[nodiscard]] Result<void> load_moments(const CheckpointReader& reader);
  // Adds the saved error-feedback residuals of all members to the gradients of first copies.
  // REQUIRES: the reader has a manifest.
  [[nodiscard]] Result<void> load_residuals(const CheckpointReader& reader);
  // Reads the state `residual_kind` of momentum-corrected all-reduces into the gradient arrays of
  // their parameters: that of this member, or the total of all members, added in their order.
  // REQUIRES: the reader has a manifest; between steps.
  [[nodiscard]] Result<void> load_correction_state(const CheckpointReader& reader,
                                                   ResidualKind residual_kind,
                                                   FeedbackScope scope);
  // Converts saved velocities of parameters that are no longer momentum-corrected to the
  // optimizer's momentum. `tokens`: of a step; gradients are multiplied by 1/tokens.
  [[nodiscard]] Result<void> end_momentum_correction(const CheckpointReader& reader,
                                                     float momentum,
                                                     double tokens);

  std::span<float> gradients(ChunkId chunk) override;
  // The gradient at the entry that is updated: the owner, or its use on a rank without the owner.
  std::span<float> tied_gradient() override;
  // Adds the gradients of the tied parameter's uses on this rank.
  void end_tied_gradient() override;

  // A parameter that this rank updates: every one but a use tied to an owner on this rank.
  struct Updated {
    std::size_t number = 0;
    ChunkId chunk;
    const ParameterSpec* spec = nullptr;  // valid as long as this object
    bool is_tied = false;                 // a use of the tied parameter
    bool is_first = true;                 // as HeldParameter
    bool is_counted = true;
    int island = 0;
    int member = 0;
    int members = 1;
  };

  [[nodiscard]] std::vector<Updated> updated() const;
  // The values of such a parameter. Valid until the next update.
  [[nodiscard]] std::span<const float> values(std::size_t number);
  // Replaces them, and those of uses tied to it on this rank.
  void set_values(std::size_t number, std::span<const float> values);

  // The parameter's moments, from 0 on; each as values().
  [[nodiscard]] std::size_t moment_count(std::size_t number) const {
    return entries_[number].moments.size();
  }

  [[nodiscard]] std::span<const float> moment(std::size_t number, std::size_t moment);
  void set_moment(std::size_t number, std::size_t moment, std::span<const float> values);

  // Norms of counted copies; a tied parameter counts once, at its owner.
  [[nodiscard]] std::vector<LayerNorm2> layer_norms() override;
  // REQUIRES: this rank is in the group.
  [[nodiscard]] std::uint64_t copy_hash(const CopyGroup& group) override;
  void update(const StepFactors& factors, const GradientScales& scales) override;
  void clear_gradients() override;

  // The tensors that this rank saves: first copies of what it owns. In rounds, the moments of other
  // islands' counted copies too, as "exp_avg.island.NUMBER/NAME". The views are valid until the
  // next update or clear_gradients().
  [[nodiscard]] std::vector<TensorView> parameter_views();
  [[nodiscard]] std::vector<TensorView> moment_views();
  // The gradients of all parameters that this rank updates, as error-feedback residuals; with
  // momentum correction, of the corrected parameters alone.
  [[nodiscard]] std::vector<TensorView> residual_views();
  // The gradients of all momentum-corrected parameters, as their velocities.
  [[nodiscard]] std::vector<TensorView> velocity_views();

  [[nodiscard]] bool has_corrected() const { return has_corrected_; }

 private:
  struct Entry {
    ChunkId chunk;
    int layer = 0;  // in the model
    bool is_first = true;
    bool is_counted = true;
    int island = 0;
    int member = 0;
    int members = 1;
    bool corrected = false;
    ParameterSpec spec;
    double lr_factor = 1;
    double decay_factor = 0;
    std::vector<std::string> moments;  // names; none for a use tied to `owner`
    bool averaged = false;
    std::optional<std::size_t> owner;  // a tied use whose owner is on this rank

    [[nodiscard]] std::uint64_t bytes() const {
      return static_cast<std::uint64_t>(spec.count()) * sizeof(float);
    }
  };

  [[nodiscard]] std::vector<TensorView> gradient_views(ResidualKind residual_kind, bool corrected);
  // Sets `sum` to the total of the parameter's saved state of this kind; false if there is none.
  [[nodiscard]] static Result<bool> add_saved_residual(
      const CheckpointReader& reader,
      const std::map<std::string, std::vector<std::string>>& names,
      const ParameterSpec& spec,
      std::vector<float>& sum);

  // The entry where the tied parameter is updated. REQUIRES: this rank has a use of it.
  [[nodiscard]] std::size_t tied_entry() const;

  void fill(const StateArray& array, std::span<const float> values);
  // Sets each average to the parameter's values.
  [[nodiscard]] Result<void> begin_averages();

  const int micro_batches_;
  const double ema_;
  std::unique_ptr<StateMemory> memory_;  // its parameters are numbered like `entries_`
  std::vector<Entry> entries_;
  std::set<ChunkId> chunks_;
  std::vector<int> voted_layers_;  // in the order of `entries_`
  std::string tied_parameter_;
  bool has_corrected_ = false;
};

}  // namespace motley
