#include "models/spec/hf_config.h"

#include "base/json.h"

namespace motley {

Json huggingface_config(const ModelConfig& model) {
  if (model.kind != "gpt2") {
    return Json{{"model_type", "motley-" + model.kind},
                {"n_layer", model.layers},
                {"hidden_size", model.width},
                {"n_positions", model.context},
                {"vocab_size", model.vocab}};
  }
  return Json{{"model_type", "gpt2"},
              {"architectures", Json::array({"GPT2LMHeadModel"})},
              {"activation_function", "gelu_new"},
              {"n_layer", model.layers},
              {"n_embd", model.width},
              {"n_head", model.heads},
              {"n_positions", model.context},
              {"n_ctx", model.context},
              {"vocab_size", model.vocab},
              {"tie_word_embeddings", model.tied},
              {"layer_norm_epsilon", 1e-5},
              {"attn_pdrop", model.dropout},
              {"embd_pdrop", model.dropout},
              {"resid_pdrop", model.dropout},
              {"torch_dtype", "float32"}};
}

}  // namespace motley
