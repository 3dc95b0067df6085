// Matching of a model's parameters to the tensors of a folder of weights. Pure functions of names
// and shapes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/spec/model_spec.h"

namespace motley {

using TensorShapes = std::map<std::string, std::vector<std::int64_t>>;  // by name

struct WeightLocation {
  std::string name;  // of the parameter
  std::vector<std::int64_t> shape;
  std::string stored;       // the tensor's name there
  bool transposed = false;  // stored as the transpose of the model's layout
};

struct WeightMatch {
  std::vector<WeightLocation> places;  // in the model's order, a tied parameter once
  // The head of a tied model, saved beside the embedding; it must have the same values.
  std::optional<WeightLocation> tied_copy;
  // With names and shapes; all three are empty if the tensors are exactly the model's parameters.
  // Buffers without information are left out.
  std::vector<std::string> missing;
  std::vector<std::string> reshaped;
  std::vector<std::string> unexpected;  // not part of the model

  [[nodiscard]] bool is_exact() const {
    return missing.empty() && reshaped.empty() && unexpected.empty();
  }
};

enum class Layouts {
  kSame,
  // The linear weights of a GPT-2 may be stored as [in, out] on one side and as [out, in] on the
  // other. Non-square weights decide which; square ones follow them.
  kMayBeTransposed,
};

// A parameter's name matches all its weight_name_forms.
[[nodiscard]] WeightMatch match_weights(const ModelSpec& model,
                                        const TensorShapes& tensors,
                                        Layouts layouts);

// The N of "h.N.…".
[[nodiscard]] std::optional<int> block_of(std::string_view name);

}  // namespace motley
