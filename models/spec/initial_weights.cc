#include "models/spec/initial_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/json.h"
#include "models/spec/hf_config.h"
#include "models/spec/model_spec.h"

namespace motley {
namespace {

constexpr std::size_t kNamedMax = 8;  // differences that an error lists

// One size or choice of a model: ours and theirs, as text.
struct ComparedKey {
  const char* key;     // "model.heads"
  const char* theirs;  // what the weights' side calls it
  std::string our_value;
  std::string their_value;
};

Error other_model(std::vector<std::string> differences, const std::string& source) {
  if (differences.size() > kNamedMax) {
    const std::size_t more = differences.size() - kNamedMax;
    differences.resize(kNamedMax);
    differences.push_back(fmt::format("and {} more", more));
  }
  return {ErrorCode::kConfig, fmt::format("the initial weights are of another model, {}", source),
          fmt::format("{}", fmt::join(differences, "; ")),
          "`motley config --from` and their folder prints the [model] section that fits them; or "
          "leave model.init_from out"};
}

std::vector<std::string> differing(const std::vector<ComparedKey>& keys,
                                   const KeyOrigins& origins) {
  std::vector<std::string> differences;
  for (const ComparedKey& each : keys) {
    if (each.our_value == each.their_value) continue;
    const auto origin = origins.find(each.key);
    differences.push_back(fmt::format("{} is {}{}, and {} there {}", each.key, each.our_value,
                                      origin == origins.end() ? "" : " (" + origin->second + ")",
                                      each.theirs, each.their_value));
  }
  return differences;
}

// Dropout is left out: it says how to train, not what the weights are.
Result<void> compare(const ModelConfig& model,
                     const KeyOrigins& origins,
                     const ModelConfig& theirs,
                     const std::string& source) {
  const bool is_gpt2 = theirs.kind == "gpt2";
  const auto text = [](auto value) { return fmt::format("{}", value); };
  std::vector<ComparedKey> keys = {{"model.kind", "the model", model.kind, theirs.kind}};
  if (model.kind == theirs.kind && model.kind != "package") {
    keys.push_back({"model.layers", "n_layer", text(model.layers), text(theirs.layers)});
    keys.push_back(
        {"model.width", is_gpt2 ? "n_embd" : "hidden_size", text(model.width), text(theirs.width)});
    keys.push_back({"model.context", "n_positions", text(model.context), text(theirs.context)});
    keys.push_back({"model.vocab", "vocab_size", text(model.vocab), text(theirs.vocab)});
  }
  if (model.kind == theirs.kind && is_gpt2) {
    keys.push_back({"model.heads", "n_head", text(model.heads), text(theirs.heads)});
    keys.push_back({"model.tied", "tie_word_embeddings", text(model.tied), text(theirs.tied)});
  }
  std::vector<std::string> differences = differing(keys, origins);
  if (differences.empty()) return {};
  return other_model(std::move(differences), source);
}

// The N of "h.N.…".
std::optional<int> block_of(std::string_view name) {
  if (!name.starts_with("h.")) return std::nullopt;
  int block = 0;
  const auto [end, code] = std::from_chars(name.data() + 2, name.data() + name.size(), block);
  const bool is_number = code == std::errc{} && end != name.data() + name.size() && *end == '.';
  return is_number && block >= 0 ? std::optional(block) : std::nullopt;
}

// What the tensors of a GPT-2 say of their model, all but the heads. Left as it is where they do
// not look like one: then the names differ.
ModelConfig model_of_tensors(ModelConfig model, const TensorShapes& tensors) {
  const auto tokens = tensors.find("wte.weight");
  const auto positions = tensors.find("wpe.weight");
  const auto is_matrix = [&](const auto& found) {
    return found != tensors.end() && found->second.size() == 2;
  };
  if (model.kind != "gpt2" || !is_matrix(tokens) || !is_matrix(positions)) return model;
  const auto size = [](std::int64_t value) {
    return static_cast<int>(std::clamp<std::int64_t>(value, 0, 1 << 30));
  };
  model.vocab = size(tokens->second[0]);
  model.width = size(tokens->second[1]);
  model.context = size(positions->second[0]);
  model.tied = !tensors.contains("lm_head.weight");
  model.layers = 0;
  for (const auto& [name, shape] : tensors) {
    if (const auto block = block_of(name)) model.layers = std::max(model.layers, *block + 1);
  }
  return model;
}

// Tensors that say nothing: masks that older versions of transformers saved, and a tied head saved
// beside the embedding that it is.
bool means_nothing(const std::string& name, bool tied) {
  return (block_of(name) &&
          (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias"))) ||
         (tied && name == "lm_head.weight");
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// Whether exactly the model's parameters are there.
Result<void> compare_tensors(const ModelConfig& model,
                             const TensorShapes& tensors,
                             const std::string& source) {
  MOTLEY_ASSIGN(const ModelSpec spec, describe_model(model));
  TensorShapes wanted;
  for (const LayerSpec& layer : spec.layers) {
    for (const ParameterSpec& parameter : layer.parameters)
      wanted[parameter.name] = parameter.shape;
  }
  std::vector<std::string> differences;
  for (const auto& [name, shape] : wanted) {
    const auto found = tensors.find(name);
    if (found == tensors.end()) {
      differences.push_back(fmt::format("'{}' is missing", name));
    } else if (found->second != shape) {
      differences.push_back(fmt::format("'{}' is {} for this configuration, and there {}", name,
                                        shape_text(shape), shape_text(found->second)));
    }
  }
  for (const auto& [name, shape] : tensors) {
    if (wanted.contains(name) || means_nothing(name, model.tied)) continue;
    differences.push_back(fmt::format("'{}' is nothing of this model", excerpt(name)));
  }
  if (differences.empty()) return {};
  return other_model(std::move(differences), source);
}

}  // namespace

Result<void> check_weights(const ModelConfig& model,
                           const KeyOrigins& origins,
                           const TensorShapes& tensors,
                           const Json& config,
                           const std::string& source) {
  if (config.is_null()) {
    MOTLEY_TRY(compare(model, origins, model_of_tensors(model, tensors), source));
  } else {
    MOTLEY_ASSIGN(const ModelConfig theirs, model_of_huggingface(config, source));
    MOTLEY_TRY(compare(model, origins, theirs, source));
  }
  return compare_tensors(model, tensors, source);
}

}  // namespace motley
