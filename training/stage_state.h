// StageState: the parameters, gradients and optimizer moments that one rank holds.
//
// Keyed by parameter name, so that any plan can load what any other plan saved. A tied parameter is
// owned by the layer that comes first; its other use has values and a gradient of its own. When
// both uses are on this rank the owner is updated and copied to the use; when several ranks hold
// one, each is updated with the same sum of gradients and they stay equal to the bit.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/work_counter.h"
#include "checkpoint/checkpoint.h"
#include "models/spec/model_spec.h"
#include "training/optimizer.h"
#include "training/vote.h"

namespace motley {

// A parameter as a chain of layers holds it; the spans are views into the chain's arenas.
struct HeldParameter {
  int layer = 0;  // in the model
  // Of equal copies on several ranks, the one that counts in norms and is saved.
  bool is_first = true;
  ParameterSpec spec;
  std::span<float> values;
  std::span<float> gradients;
};

class StageState {
 public:
  // `held`: in the order of the layers; the spans must outlive the state.
  StageState(std::vector<HeldParameter> held, std::unique_ptr<const Optimizer> optimizer);

  // Of the values that this rank holds, and of these with their moments.
  [[nodiscard]] std::uint64_t value_bytes() const;
  [[nodiscard]] std::uint64_t saved_bytes() const;

  // Starting values: a function of seed and name. `work` counts their bytes.
  void initialize(std::int64_t seed, WorkCounter& work);
  // Values by name from initial weights; kCorrupt when one is absent or has another shape.
  [[nodiscard]] Result<void> load_values(const CheckpointReader& reader);
  // The optimizer's moments.
  [[nodiscard]] Result<void> load_moments(const CheckpointReader& reader);
  // Adds what the sums of `rank_count` ranks still owed to the gradients of first copies.
  [[nodiscard]] Result<void> load_residuals(const CheckpointReader& reader, int rank_count);

  // The gradient of the tied parameter where it is updated: at its owner, or at its use on a rank
  // without the owner.
  [[nodiscard]] std::span<float> tied_gradient(const std::string& parameter);

  // Makes the gradient of a tied parameter the sum of its uses that are here. Called once a step,
  // after the last backward.
  void sum_tied_gradients();
  // Squared norms of first copies, by layer; a tied parameter counts once, at its owner.
  [[nodiscard]] std::vector<LayerNorm2> layer_norms() const;
  // Updates every parameter.
  void update(double lr, float gradient_scale, std::int64_t update_number);
  void clear_gradients();

  // What this rank saves: first copies of what it owns. The views are valid until the next update.
  [[nodiscard]] std::vector<TensorView> parameter_views() const;
  [[nodiscard]] std::vector<TensorView> moment_views() const;
  // The gradients of all that this rank updates, as what its compressed sums still owe.
  [[nodiscard]] std::vector<TensorView> residual_views(int rank) const;

 private:
  struct Entry {
    HeldParameter held;
    std::vector<std::vector<float>> moments;  // [moment]; empty for a use tied to `owner`
    std::optional<std::size_t> owner;         // a tied use whose owner is on this rank
  };

  std::vector<Entry> entries_;
  std::unique_ptr<const Optimizer> optimizer_;
  std::vector<std::string> moment_names_;
};

}  // namespace motley
