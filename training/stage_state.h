// StageState: the parameters, gradients and optimizer moments that one rank holds.
//
// Keyed by parameter name, so that any plan can load what any other plan saved. A tied parameter is
// owned by the layer that comes first; its other use has values and a gradient of its own. When
// both uses are on this rank the owner is updated and copied to the use; when several ranks hold
// one, each is updated with the same sum of gradients and they stay equal to the bit.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/work_counter.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/residual_name.h"
#include "compression/feedback/gradient_compressor.h"
#include "models/spec/model_spec.h"
#include "pipeline/execute/stage_gradients.h"
#include "training/host_memory.h"
#include "training/optimizer/optimizer.h"
#include "training/state_memory.h"
#include "training/vote/optimized_state.h"
#include "training/vote/vote.h"

namespace motley {

// A parameter as a chain of layers holds it; the spans are views into the chain's arenas, empty
// where these lie in a device's own memory.
struct HeldParameter {
  int layer = 0;  // in the model
  // Of equal copies on several ranks, the one that counts in norms and is saved.
  bool is_first = true;
  // Which of the ranks that sum its gradient this one is (plan/holders.h).
  int holder = 0;
  bool pushed = false;  // that sum is of pushes (training/pushes/pushed_sums.h)
  ParameterSpec spec;
  std::span<float> values;
  std::span<float> gradients;
};

struct HeldChunk {
  ChunkId chunk;
  std::span<float> summed_gradients;  // as StageGradients::gradients()
  std::vector<HeldParameter> parameters;
  // Those that this rank votes for, ascending: where its copy is the first, with parameters or not.
  std::vector<int> voted_layers;
};

// The state's memory where the spans of `held` are; they must outlive it. `in_parts`: HostMemory's.
[[nodiscard]] std::unique_ptr<StateMemory> host_memory(const std::vector<HeldChunk>& held,
                                                       std::unique_ptr<const Optimizer> optimizer,
                                                       InParts in_parts = in_one_part);

class StageState final : public StageGradients, public OptimizedState {
 public:
  // `held`: in the order of the layers. `memory` has its parameters, numbered in their order over
  // all chunks. `tied_parameter`: the model's, "" = none. `micro_batches`: of a step, over all
  // replicas: what statistics are a mean of.
  StageState(const std::vector<HeldChunk>& held,
             std::unique_ptr<StateMemory> memory,
             std::string tied_parameter,
             int micro_batches = 1);
  // The same in the spans of `held`, which must outlive the state.
  StageState(const std::vector<HeldChunk>& held,
             std::unique_ptr<const Optimizer> optimizer,
             std::string tied_parameter,
             int micro_batches = 1);

  // Of the values that this rank holds, and of these with their moments.
  [[nodiscard]] std::uint64_t value_bytes() const;
  [[nodiscard]] std::uint64_t saved_bytes() const;

  // Starting values: a function of seed and name. `work` counts their bytes.
  [[nodiscard]] Result<void> initialize(std::int64_t seed, WorkCounter& work);
  // Values by name from initial weights; kCorrupt when one is absent or has another shape, kData,
  // naming it, when it holds an infinity or a NaN.
  [[nodiscard]] Result<void> load_values(const CheckpointReader& reader);
  // The optimizer's moments.
  [[nodiscard]] Result<void> load_moments(const CheckpointReader& reader);
  // Adds what sums of gradients still owed, whoever held them, to the gradients of first copies.
  // REQUIRES: the reader has a manifest.
  [[nodiscard]] Result<void> load_residuals(const CheckpointReader& reader);
  // Writes what was kept of pushes to the gradients of all whose sums are pushes: `owed` of this
  // holder or, added in their order, of all. REQUIRES: the reader has a manifest; between steps.
  [[nodiscard]] Result<void> load_pushes(const CheckpointReader& reader, Owed owed, KeptBy whose);
  // What was kept of pushes whose sums are none any more goes on as the optimizer's momentum:
  // `tokens` of a step, as gradients are multiplied with 1/tokens.
  [[nodiscard]] Result<void> end_pushes(const CheckpointReader& reader,
                                        float momentum,
                                        double tokens);

  std::span<float> gradients(ChunkId chunk) override;
  // Where it is updated: at its owner, or at its use on a rank without the owner.
  std::span<float> tied_gradient() override;
  // Makes the gradient of a tied parameter the sum of its uses that are here.
  void end_tied_gradient() override;

  // Of first copies; a tied parameter counts once, at its owner.
  [[nodiscard]] std::vector<LayerNorm2> layer_norms() override;
  // REQUIRES: this rank is in the group.
  [[nodiscard]] std::uint64_t copy_hash(const CopyGroup& group) override;
  void update(const StepFactors& factors, const GradientScales& scales) override;
  void clear_gradients() override;

  // What this rank saves: first copies of what it owns. The views are valid until the next update
  // or clear_gradients().
  [[nodiscard]] std::vector<TensorView> parameter_views();
  [[nodiscard]] std::vector<TensorView> moment_views();
  // The gradients of all that this rank updates, as what its compressed sums still owe; where sums
  // are of pushes, of those alone.
  [[nodiscard]] std::vector<TensorView> residual_views();
  // The gradients of all whose sums are of pushes, as the velocities of these.
  [[nodiscard]] std::vector<TensorView> velocity_views();

  [[nodiscard]] bool has_pushes() const { return has_pushes_; }

 private:
  struct Entry {
    ChunkId chunk;
    int layer = 0;  // in the model
    bool is_first = true;
    int holder = 0;
    bool pushed = false;
    ParameterSpec spec;
    std::size_t moments = 0;           // how many; none for a use tied to `owner`
    std::optional<std::size_t> owner;  // a tied use whose owner is on this rank

    [[nodiscard]] std::uint64_t bytes() const {
      return static_cast<std::uint64_t>(spec.count()) * sizeof(float);
    }
  };

  [[nodiscard]] std::vector<TensorView> gradient_views(Owed owed, bool pushed);
  // Adds all that is owed of the parameter to `sum`; false where nothing is.
  [[nodiscard]] static Result<bool> add_owed(
      const CheckpointReader& reader,
      const std::map<std::string, std::vector<std::string>>& names,
      const ParameterSpec& spec,
      std::vector<float>& sum);

  // Where the tied parameter is updated. REQUIRES: a use of it is here.
  [[nodiscard]] std::size_t tied_entry() const;

  const int micro_batches_;
  std::unique_ptr<StateMemory> memory_;  // its parameters are numbered as `entries_`
  std::vector<Entry> entries_;
  std::set<ChunkId> chunks_;
  std::vector<int> voted_layers_;  // in the order of `entries_`
  std::vector<std::string> moment_names_;
  std::string tied_parameter_;
  bool has_pushes_ = false;
};

}  // namespace motley
