#include "models/spec/hf_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "checkpoint/folders.h"
#include "models/spec/model_spec.h"

namespace motley {

Json huggingface_config(const ModelConfig& model) {
  if (model.kind == "package") return Json{{"model_type", "motley-package"}};
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
              {"layer_norm_epsilon", kLayerNormEpsilon},
              {"attn_pdrop", model.dropout},
              {"embd_pdrop", model.dropout},
              {"resid_pdrop", model.dropout},
              {"torch_dtype", "float32"}};
}

std::span<const char* const> huggingface_companions() {
  static constexpr std::array kNames = {
#include "models/spec/companion_list.inc"
  };
  return kNames;
}

Json with_dtype(Json config, const char* torch_type) {
  config["torch_dtype"] = torch_type;
  if (config.contains("dtype")) config["dtype"] = torch_type;  // the key of newer versions
  return config;
}

Result<Json> checkpoint_config(const Package& package) {
  // Counts steps only; it does not affect what the model computes.
  constexpr std::string_view kCounter = "num_batches_tracked";
  const bool is_whole = std::ranges::all_of(
      package.untrained, [&](const std::string& name) { return name.ends_with(kCounter); });
  if (package.model_config.empty() || !is_whole) return Json{{"model_type", "motley-package"}};
  MOTLEY_ASSIGN(Json config, parse_json(package.model_config, kModelConfigName));
  return with_dtype(std::move(config), "float32");
}

std::string huggingface_name(const ModelConfig& model, const std::string& parameter) {
  const bool is_body = model.kind == "gpt2" && parameter != "lm_head.weight";
  return is_body ? "transformer." + parameter : parameter;
}

namespace {

constexpr std::int64_t kSizeMax = 1 << 28;  // of anything that a model has
constexpr double kDropoutOfTransformers = 0.1;

// Reads config.json key by key, and records what Motley does not support.
class HuggingFaceReader {
 public:
  HuggingFaceReader(const Json& config, const std::string& source)
      : config_(config), source_(source) {}

  // The first existing key of `names`; transformers has two keys for some sizes.
  Result<int> size(std::initializer_list<const char*> names, int otherwise) const {
    for (const char* name : names) {
      if (is_absent(name)) continue;
      MOTLEY_ASSIGN(const auto value, json_get<std::int64_t>(config_, name, source_));
      if (value >= 1 && value <= kSizeMax) return static_cast<int>(value);
      return Error{ErrorCode::kCorrupt, fmt::format("{} is {}, {}", name, value, source_),
                   fmt::format("a size from 1 to {} was expected", kSizeMax),
                   "download or write the file again"};
    }
    return otherwise;
  }

  Result<double> number(const char* name, double otherwise) const {
    if (is_absent(name)) return otherwise;
    return json_get<double>(config_, name, source_);
  }

  Result<bool> boolean(const char* name, bool otherwise) const {
    if (is_absent(name)) return otherwise;
    return json_get<bool>(config_, name, source_);
  }

  Result<std::string> text(const char* name, const char* otherwise) const {
    if (is_absent(name)) return std::string(otherwise);
    return json_get<std::string>(config_, name, source_);
  }

  // Keys of which Motley supports one value, which is also transformers' default.
  Result<void> require(const char* name, bool supported) {
    MOTLEY_ASSIGN(const bool value, boolean(name, supported));
    if (value != supported) refuse(name, fmt::format("Motley supports {}", supported));
    return {};
  }

  void refuse_if_set(const char* name) {
    if (!is_absent(name) && !config_[name].empty()) refuse(name, "Motley supports none");
  }

  void refuse(const char* name, const std::string& why) {
    constexpr std::size_t kValueMax = 60;
    const std::string value = is_absent(name) ? "absent" : excerpt(config_[name].dump(), kValueMax);
    refused_.push_back(fmt::format("{} is {}: {}", name, value, why));
  }

  [[nodiscard]] Result<void> finish() const {
    if (refused_.empty()) return {};
    return Error{ErrorCode::kConfig, fmt::format("unsupported model, {}", source_),
                 fmt::format("{}", fmt::join(refused_, "; ")),
                 "use a supported model, or leave model.init_from out"};
  }

 private:
  [[nodiscard]] bool is_absent(const char* name) const {
    return !config_.contains(name) || config_[name].is_null();
  }

  const Json& config_;
  const std::string& source_;
  std::vector<std::string> refused_;
};

// Motley's families that Hugging Face does not have.
Result<ModelConfig> read_own_family(const HuggingFaceReader& reader, const std::string& family) {
  ModelConfig model;
  model.kind = family;
  MOTLEY_ASSIGN(model.layers, reader.size({"n_layer"}, model.layers));
  MOTLEY_ASSIGN(model.width, reader.size({"hidden_size"}, model.width));
  MOTLEY_ASSIGN(model.context, reader.size({"n_positions"}, model.context));
  MOTLEY_ASSIGN(model.vocab, reader.size({"vocab_size"}, model.vocab));
  return model;
}

Result<void> check_gpt2_kind(HuggingFaceReader& reader, int width) {
  // Both are GELU in its tanh form.
  MOTLEY_ASSIGN(const std::string activation, reader.text("activation_function", "gelu_new"));
  if (activation != "gelu_new" && activation != "gelu_pytorch_tanh") {
    reader.refuse("activation_function", "Motley supports gelu_new");
  }
  MOTLEY_ASSIGN(const double epsilon, reader.number("layer_norm_epsilon", kLayerNormEpsilon));
  if (static_cast<float>(epsilon) != static_cast<float>(kLayerNormEpsilon)) {
    reader.refuse("layer_norm_epsilon", fmt::format("Motley supports {}", kLayerNormEpsilon));
  }
  MOTLEY_ASSIGN(const int inner, reader.size({"n_inner"}, 4 * width));
  if (inner != 4 * width) {
    reader.refuse("n_inner", fmt::format("Motley's is 4 times n_embd, {}", 4 * width));
  }
  MOTLEY_TRY(reader.require("scale_attn_weights", true));
  for (const char* name :
       {"scale_attn_by_inverse_layer_idx", "add_cross_attention", "is_encoder_decoder"}) {
    MOTLEY_TRY(reader.require(name, false));
  }
  for (const char* name : {"quantization_config", "pruned_heads"}) reader.refuse_if_set(name);
  return {};
}

Result<ModelConfig> read_gpt2(HuggingFaceReader& reader) {
  const ModelConfig published;  // both default to GPT-2 of 124 million parameters
  ModelConfig model;
  MOTLEY_ASSIGN(model.layers, reader.size({"n_layer", "num_hidden_layers"}, published.layers));
  MOTLEY_ASSIGN(model.width, reader.size({"n_embd", "hidden_size"}, published.width));
  MOTLEY_ASSIGN(model.heads, reader.size({"n_head", "num_attention_heads"}, published.heads));
  MOTLEY_ASSIGN(model.context,
                reader.size({"n_positions", "max_position_embeddings"}, published.context));
  MOTLEY_ASSIGN(model.vocab, reader.size({"vocab_size"}, published.vocab));
  MOTLEY_ASSIGN(model.tied, reader.boolean("tie_word_embeddings", true));
  // Motley has one rate; of transformers' three, it uses that of the residual branches.
  MOTLEY_ASSIGN(model.dropout, reader.number("resid_pdrop", kDropoutOfTransformers));
  MOTLEY_TRY(check_gpt2_kind(reader, model.width));
  return model;
}

}  // namespace

Result<ModelConfig> model_of_huggingface(const Json& config, const std::string& source) {
  HuggingFaceReader reader(config, source);
  MOTLEY_ASSIGN(const auto family, json_get<std::string>(config, "model_type", source));
  constexpr std::string_view kOwn = "motley-";
  ModelConfig model;
  if (family == "gpt2") {
    MOTLEY_ASSIGN(model, read_gpt2(reader));
  } else if (family.starts_with(kOwn)) {
    MOTLEY_ASSIGN(model, read_own_family(reader, family.substr(kOwn.size())));
  } else {
    reader.refuse("model_type", "Motley supports gpt2");
  }
  MOTLEY_TRY(reader.finish());
  if (const auto described = describe_model(model); !described.ok()) {
    return with_context(described.error(), source);
  }
  return model;
}

}  // namespace motley
