// The config.json that lets Hugging Face transformers open a checkpoint folder as it is, written
// and read. Pure functions.
#pragma once

#include <span>
#include <string>

#include "base/json_fwd.h"
#include "base/result.h"
#include "job/config.h"
#include "models/package/package.h"

namespace motley {

// gpt2: GPT2LMHeadModel's keys. Other families: a plain description that no library claims.
[[nodiscard]] Json huggingface_config(const ModelConfig& model);

// What transformers calls a parameter of the model where it saves it: of a gpt2 all but the head
// stand under "transformer.", without which it would not take an untied head.
[[nodiscard]] std::string huggingface_name(const ModelConfig& model, const std::string& parameter);

// What may lie beside a model's weights and goes where they go: its tokenizer, what prepares its
// pictures or sounds, and how it writes.
[[nodiscard]] std::span<const char* const> huggingface_companions();

// `config` of weights whose numbers are of that type, by torch's name: transformers opens them as
// the type that config.json says.
[[nodiscard]] Json with_number_type(Json config, const char* torch_type);

// What makes transformers open a folder with a package's parameters and statistics alone: its
// config.json. Where it keeps none, or the model has tensors besides that transformers would have
// to make up, a plain description that no library claims. kCorrupt when it is no JSON.
[[nodiscard]] Result<Json> checkpoint_config(const Package& package);

// The model that such a config.json describes; keys that it lacks have transformers' defaults.
// `source` names it in errors. kConfig, naming each key, for a model that Motley would compute
// otherwise (another family, activation or epsilon, cross attention, …); kCorrupt for what is no
// config.json.
[[nodiscard]] Result<ModelConfig> model_of_huggingface(const Json& config,
                                                       const std::string& source);

}  // namespace motley
