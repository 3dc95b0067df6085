// Reading and writing of the config.json with which Hugging Face transformers opens a checkpoint
// folder. Pure functions.
#pragma once

#include <span>
#include <string>

#include "base/json_fwd.h"
#include "base/result.h"
#include "models/package/package.h"
#include "run_config/config.h"

namespace motley {

// gpt2: GPT2LMHeadModel's keys. Other families: a plain description for no library.
[[nodiscard]] Json huggingface_config(const ModelConfig& model);

// The name under which transformers saves a parameter of the model. In a gpt2 all except the head
// are under "transformer."; otherwise transformers would not load an untied head.
[[nodiscard]] std::string huggingface_name(const ModelConfig& model, const std::string& parameter);

// Files that are copied along with a model's weights: its tokenizer, its image or audio
// preprocessor, and its generation settings.
[[nodiscard]] std::span<const char* const> huggingface_companions();

// `config` for weights of that dtype, by torch's name: transformers loads them with the dtype that
// config.json names.
[[nodiscard]] Json with_dtype(Json config, const char* torch_type);

// The config.json with which transformers opens a folder with only a package's parameters and
// statistics. If the package has none, or the model has further tensors that transformers would
// have to initialize, a plain description for no library. kCorrupt if it is not JSON.
[[nodiscard]] Result<Json> checkpoint_config(const Package& package);

// The model that such a config.json describes; missing keys have transformers' defaults. `source`
// names it in errors. kConfig, naming each key, for a model that Motley would compute differently
// (another family, activation or epsilon, cross attention, …); kCorrupt if it is not a config.json.
[[nodiscard]] Result<ModelConfig> model_of_huggingface(const Json& config,
                                                       const std::string& source);

}  // namespace motley
