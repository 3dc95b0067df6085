// The config.json that lets Hugging Face transformers open a checkpoint folder as it is.
#pragma once

#include "base/json_fwd.h"
#include "job/config.h"

namespace motley {

// gpt2: GPT2LMHeadModel's keys. Other families: a plain description that no library claims.
[[nodiscard]] Json huggingface_config(const ModelConfig& model);

}  // namespace motley
