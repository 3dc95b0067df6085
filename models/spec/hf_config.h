// The config.json that lets Hugging Face transformers open a checkpoint folder as it is, written
// and read. Pure functions.
#pragma once

#include <string>

#include "base/json_fwd.h"
#include "base/result.h"
#include "job/config.h"

namespace motley {

// gpt2: GPT2LMHeadModel's keys. Other families: a plain description that no library claims.
[[nodiscard]] Json huggingface_config(const ModelConfig& model);

// The model that such a config.json describes; keys that it lacks have transformers' defaults.
// `source` names it in errors. kConfig, naming each key, for a model that Motley would compute
// otherwise (another family, activation or epsilon, cross attention, …); kCorrupt for what is no
// config.json.
[[nodiscard]] Result<ModelConfig> model_of_huggingface(const Json& config,
                                                       const std::string& source);

}  // namespace motley
