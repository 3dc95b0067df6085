// StageState: the parameters, gradients and optimizer moments that one rank holds.
//
// Keyed by parameter name, so that any plan can load what any other plan saved. A tied parameter is
// owned by the layer that comes first; its other use has values and a gradient of its own. When
// both uses are on this rank the owner is updated and copied to the use; when they are on two
// ranks, both are updated with the same sum of gradients and stay equal to the bit.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "models/model_spec.h"
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

  // Starting values: a function of seed and name.
  void initialize(std::int64_t seed);
  // Values by name from initial weights; kCorrupt when one is absent or has another shape.
  [[nodiscard]] Result<void> load_values(const CheckpointReader& reader);
  // The optimizer's moments.
  [[nodiscard]] Result<void> load_moments(const CheckpointReader& reader);

  // Declares that the other use of this tied parameter is on another rank.
  void use_tied_across_ranks(const std::string& parameter);
  // The gradient of one use of a tied parameter, which is on this rank.
  [[nodiscard]] std::span<const float> tied_gradient(const std::string& parameter,
                                                     bool tied_use) const;
  // Room for the other rank's gradient; sum_tied_gradients() adds it.
  [[nodiscard]] std::span<float> other_tied_gradient();

  // Makes the gradient of a tied parameter the sum of its uses. Called once a step, before the
  // vote.
  void sum_tied_gradients();
  // Squared norms of first copies, by layer; a tied parameter counts once, at its owner.
  [[nodiscard]] std::vector<LayerNorm2> layer_norms() const;
  // Updates every parameter.
  void update(double lr, float gradient_scale, std::int64_t update_number);
  void clear_gradients();

  // What this rank saves: first copies of what it owns. The views are valid until the next update.
  [[nodiscard]] std::vector<TensorView> parameter_views() const;
  [[nodiscard]] std::vector<TensorView> moment_views() const;

 private:
  struct Entry {
    HeldParameter held;
    std::vector<std::vector<float>> moments;  // [moment]; empty for a use tied to `owner`
    std::optional<std::size_t> owner;         // a tied use whose owner is on this rank
  };

  std::vector<Entry> entries_;
  std::unique_ptr<const Optimizer> optimizer_;
  std::vector<std::string> moment_names_;
  std::vector<float> other_tied_gradient_;  // empty without a tied pair on two ranks
  std::optional<std::size_t> tied_entry_;   // this rank's half of a tied pair on two ranks
};

}  // namespace motley
