// Whether weights from elsewhere are those of a configured model: what their config.json says, and
// which tensors they have. Pure functions; the values of the tensors are not looked at.
#pragma once

#include <map>
#include <string>

#include "base/json_fwd.h"
#include "base/result.h"
#include "job/config.h"
#include "models/spec/weight_match.h"

namespace motley {

// Where the values of a configuration came from, by key ("model.heads" -> "job.toml:7:1"); may lack
// keys.
using KeyOrigins = std::map<std::string, std::string>;

// kConfig, naming each key that differs with both values and both places, and some of the tensors
// that do and how many more, when the weights are not of
// `model`; or when config.json asks for what Motley does not compute (model_of_huggingface).
// `config` is that config.json, null where there is none; then the tensors tell what they can,
// which is all but the number of heads. `source` names it, or the weights without it. REQUIRES:
// describe_model accepts `model`.
[[nodiscard]] Result<void> check_weights(const ModelConfig& model,
                                         const KeyOrigins& origins,
                                         const TensorShapes& tensors,
                                         const Json& config,
                                         const std::string& source);

// The same for weights that are to be converted: where each parameter lies, by its name there.
// kConfig, the same of keys and tensors together.
[[nodiscard]] Result<WeightMatch> place_weights(const ModelConfig& model,
                                                const KeyOrigins& origins,
                                                const TensorShapes& tensors,
                                                const Json& config,
                                                const std::string& source);

}  // namespace motley
