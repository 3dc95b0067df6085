// The config.json that lets Hugging Face transformers open a checkpoint folder as it is, written
// and read. Pure functions.
#pragma once

#include <array>
#include <string>

#include "base/json_fwd.h"
#include "base/result.h"
#include "job/config.h"

namespace motley {

// gpt2: GPT2LMHeadModel's keys. Other families: a plain description that no library claims.
[[nodiscard]] Json huggingface_config(const ModelConfig& model);

// What transformers calls a parameter of the model where it saves it: of a gpt2 all but the head
// stand under "transformer.", without which it would not take an untied head.
[[nodiscard]] std::string huggingface_name(const ModelConfig& model, const std::string& parameter);

// What may lie beside a model's weights and goes where they go: its tokenizer, and how it writes.
inline constexpr std::array kHuggingFaceCompanions = {"tokenizer.json",
                                                      "tokenizer_config.json",
                                                      "vocab.json",
                                                      "merges.txt",
                                                      "special_tokens_map.json",
                                                      "tokenizer.model",
                                                      "generation_config.json"};

// The model that such a config.json describes; keys that it lacks have transformers' defaults.
// `source` names it in errors. kConfig, naming each key, for a model that Motley would compute
// otherwise (another family, activation or epsilon, cross attention, …); kCorrupt for what is no
// config.json.
[[nodiscard]] Result<ModelConfig> model_of_huggingface(const Json& config,
                                                       const std::string& source);

}  // namespace motley
