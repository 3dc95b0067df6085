// Checks that external weights are those of a configured model, by their config.json and the shapes
// of their tensors. Pure functions; they do not read the tensors' values.
#pragma once

#include <map>
#include <string>

#include "base/json_fwd.h"
#include "base/result.h"
#include "models/spec/weight_match.h"
#include "run_config/config.h"

namespace motley {

// The origins of a configuration's values, by key ("model.heads" -> "job.toml:7:1"); may lack keys.
using KeyOrigins = std::map<std::string, std::string>;

// kConfig if the weights are not of `model`, naming each key that differs with both values and both
// origins, and some of the tensors that differ with the number of the others; also if config.json
// requires something that Motley does not compute (model_of_huggingface). `config` is that
// config.json, or null if there is none; then the tensors determine everything except the number of
// heads. `source` names it, or the weights without it. REQUIRES: describe_model accepts `model`.
[[nodiscard]] Result<void> check_weights(const ModelConfig& model,
                                         const KeyOrigins& origins,
                                         const TensorShapes& tensors,
                                         const Json& config,
                                         const std::string& source);

// The same for weights that are to be converted: returns the position of each parameter, by its
// name there. kConfig as above, for keys and tensors together.
[[nodiscard]] Result<WeightMatch> place_weights(const ModelConfig& model,
                                                const KeyOrigins& origins,
                                                const TensorShapes& tensors,
                                                const Json& config,
                                                const std::string& source);

}  // namespace motley
