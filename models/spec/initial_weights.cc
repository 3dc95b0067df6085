#include "models/spec/initial_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json.h"
#include "checkpoint/weight_names.h"
#include "models/spec/hf_config.h"
#include "models/spec/model_spec.h"

namespace motley {
namespace {

constexpr std::size_t kNamedMax = 3;  // tensors of one kind of difference in an error

// One size or choice of a model, as text: the configuration's and the weights'.
struct ComparedKey {
  const char* key;     // "model.heads"
  const char* theirs;  // its name on the weights' side
  std::string our_value;
  std::string their_value;
};

// Appends the first of `tensors`, and the number of the others.
void name_some(std::vector<std::string>& differences,
               const std::vector<std::string>& tensors,
               const char* more_are) {
  const std::size_t named = std::min(tensors.size(), kNamedMax);
  differences.insert(differences.end(), tensors.begin(),
                     tensors.begin() + static_cast<std::ptrdiff_t>(named));
  if (named == tensors.size()) return;
  differences.push_back(fmt::format("and {} more {}", tensors.size() - named, more_are));
}

// `differences`: of the models' keys.
Error other_model(std::vector<std::string> differences,
                  const WeightMatch& match,
                  const std::string& source) {
  name_some(differences, match.missing, "are missing");
  name_some(differences, match.reshaped, "have another shape");
  name_some(differences, match.unexpected, "are not in this model");
  return {ErrorCode::kConfig, fmt::format("the initial weights are of another model, {}", source),
          fmt::format("{}", fmt::join(differences, "; ")),
          "`motley config --from FOLDER` prints the matching [model] section; or leave "
          "model.init_from out"};
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

// Without dropout, which affects training but not the weights.
std::vector<std::string> compare(const ModelConfig& model,
                                 const KeyOrigins& origins,
                                 const ModelConfig& theirs) {
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
  return differing(keys, origins);
}

// The model according to the tensors of a GPT-2, without the number of heads. Unchanged if they do
// not look like one; then the names differ.
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

// Compares the model with config.json, or with the tensors if there is none. A package's weights
// are compared by their names alone.
Result<std::vector<std::string>> compare_kinds(const ModelConfig& model,
                                               const KeyOrigins& origins,
                                               const TensorShapes& tensors,
                                               const Json& config,
                                               const std::string& source) {
  if (model.kind == "package") return std::vector<std::string>{};
  if (config.is_null()) return compare(model, origins, model_of_tensors(model, tensors));
  MOTLEY_ASSIGN(const ModelConfig theirs, model_of_huggingface(config, source));
  return compare(model, origins, theirs);
}

TensorShapes with_bare_names(const TensorShapes& tensors) {
  TensorShapes bare;
  for (const auto& [name, shape] : tensors) bare.emplace(bare_weight_name(name), shape);
  return bare;
}

}  // namespace

Result<void> check_weights(const ModelConfig& model,
                           const KeyOrigins& origins,
                           const TensorShapes& tensors,
                           const Json& config,
                           const std::string& source) {
  MOTLEY_ASSIGN(std::vector<std::string> kinds,
                compare_kinds(model, origins, tensors, config, source));
  if (!kinds.empty()) return other_model(std::move(kinds), {}, source);
  MOTLEY_ASSIGN(const ModelSpec spec, describe_model(model));
  const WeightMatch match = match_weights(spec, tensors, Layouts::kSame);
  if (match.is_exact()) return {};
  return other_model({}, match, source);
}

Result<WeightMatch> place_weights(const ModelConfig& model,
                                  const KeyOrigins& origins,
                                  const TensorShapes& tensors,
                                  const Json& config,
                                  const std::string& source) {
  MOTLEY_ASSIGN(std::vector<std::string> differences,
                compare_kinds(model, origins, with_bare_names(tensors), config, source));
  MOTLEY_ASSIGN(const ModelSpec spec, describe_model(model));
  WeightMatch match = match_weights(spec, tensors, Layouts::kMayBeTransposed);
  if (differences.empty() && match.is_exact()) return match;
  return other_model(std::move(differences), match, source);
}

}  // namespace motley
