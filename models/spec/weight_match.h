// Which tensor of a folder of weights each parameter of a model is. Pure functions of names and
// shapes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/spec/model_spec.h"

namespace motley {

using TensorShapes = std::map<std::string, std::vector<std::int64_t>>;  // by name

struct WeightPlace {
  std::string name;  // of the parameter
  std::vector<std::int64_t> shape;
  std::string stored;       // what the tensor is called there
  bool transposed = false;  // it lies there as the transpose of what the model stores
};

struct WeightMatch {
  std::vector<WeightPlace> places;  // in the model's order, a tied parameter once
  // The head of a tied model, saved beside the embedding that it is: must have the same values.
  std::optional<WeightPlace> tied_copy;
  // Each with names and shapes; all three empty when the tensors are exactly the model's
  // parameters. Buffers that say nothing are left out.
  std::vector<std::string> missing;
  std::vector<std::string> reshaped;
  std::vector<std::string> strange;  // nothing of the model

  [[nodiscard]] bool is_exact() const {
    return missing.empty() && reshaped.empty() && strange.empty();
  }
};

enum class Layouts {
  kSame,
  // The linear weights of a GPT-2 may lie as [in, out] on one side and as [out, in] on the other.
  // Those that are not square show it; the square ones are then as they are.
  kMayBeTransposed,
};

// A parameter's name stands for all its weight_name_forms.
[[nodiscard]] WeightMatch match_weights(const ModelSpec& model,
                                        const TensorShapes& tensors,
                                        Layouts layouts);

// The N of "h.N.…".
[[nodiscard]] std::optional<int> block_of(std::string_view name);

}  // namespace motley
