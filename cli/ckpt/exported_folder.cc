#include "cli/ckpt/exported_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/json.h"
#include "base/system/files.h"
#include "checkpoint/folders.h"
#include "checkpoint/weight_names.h"
#include "cli/inputs.h"
#include "models/spec/hf_config.h"
#include "models/spec/initial_weights.h"
#include "record/run_folder.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAveragePrefix = "ema/";

// Replaces parameters by their averages. Statistics have none.
Result<void> take_averages(const OpenedWeights& weights, std::vector<StoredTensor>& tensors) {
  std::map<std::string, StoredTensor> averages;
  for (const StoredTensor& tensor : weights.reader.tensors()) {
    const std::string& name = tensor.outline.name;
    if (!tensor.of_optimizer || !name.starts_with(kAveragePrefix)) continue;
    averages.emplace(name.substr(kAveragePrefix.size()), tensor);
  }
  if (averages.empty()) {
    return Error{ErrorCode::kConfig,
                 fmt::format("no average of the weights in {}", weights.path.string()),
                 "a run averages them with train.ema, for instance 0.999", "leave out --ema"};
  }
  for (StoredTensor& tensor : tensors) {
    const auto average = averages.find(tensor.outline.name);
    if (average != averages.end()) tensor = average->second;
  }
  return {};
}

// The folder of model.init_from, if it is on this machine.
std::optional<fs::path> origin_of(const OpenedWeights& weights) {
  if (weights.reader.manifest() == nullptr) return weights.folder();
  if (!weights.model || weights.model->init_from.empty()) return {};
  std::error_code code;
  const fs::path origin = weights.model->init_from;
  if (fs::is_directory(origin, code)) return origin;
  return fs::is_regular_file(origin, code) ? std::optional(origin.parent_path()) : std::nullopt;
}

// Appends those of `more` with new names.
void add_files(std::vector<fs::path>& files, const std::vector<fs::path>& more) {
  for (const fs::path& path : more) {
    const bool is_there = std::ranges::any_of(
        files, [&](const fs::path& each) { return each.filename() == path.filename(); });
    if (!is_there) files.push_back(path);
  }
}

Result<std::vector<fs::path>> companions_of(const Arguments& arguments,
                                            const OpenedWeights& weights) {
  if (!arguments.has("tokenizer")) {
    const auto origin = origin_of(weights);
    return origin ? companions_in(*origin) : std::vector<fs::path>{};
  }
  const fs::path folder = arguments.value("tokenizer");
  MOTLEY_TRY(check_exists(folder));
  std::vector<fs::path> found = companions_in(folder);
  if (!found.empty()) return found;
  return Error{ErrorCode::kConfig, fmt::format("no tokenizer in {}", folder.string()),
               fmt::format("it has none of {}", fmt::join(huggingface_companions(), ", ")),
               "give the folder of the model that the tokenizer belongs to"};
}

// The names of the classes in the run folder of a checkpoint.
std::vector<fs::path> class_names_of(const OpenedWeights& weights) {
  if (weights.reader.manifest() == nullptr) return {};
  std::error_code code;
  const fs::path checkpoint = fs::weakly_canonical(weights.folder(), code);
  const fs::path names = RunFolder(checkpoint.parent_path().parent_path()).classes_path();
  return fs::is_regular_file(names, code) ? std::vector{names} : std::vector<fs::path>{};
}

// The config.json in the folder that --config names.
Result<Json> given_config(const fs::path& folder) {
  const fs::path path = folder / kModelConfigName;
  MOTLEY_TRY(check_exists(path));
  MOTLEY_ASSIGN(const std::string text, read_file(path, std::uint64_t{1} << 20));
  MOTLEY_ASSIGN(Json config, parse_json(text, path.string()));
  if (config.is_object()) return config;
  return Error{ErrorCode::kCorrupt,
               fmt::format("not the configuration of a model, {}", path.string()),
               "it is not a JSON object", "give the folder of a Hugging Face model"};
}

// config.json with the dtype of the written values. Null if there is none: for a package without
// one, unless it was initialized from weights with one.
Result<Json> exported_config(const Arguments& arguments,
                             const OpenedWeights& weights,
                             const PackageExport* package,
                             FloatFormat format) {
  Json config = weights.config;
  const bool is_package = weights.model && weights.model->kind == "package";
  if (arguments.has("config")) {
    MOTLEY_ASSIGN(config, given_config(arguments.value("config")));
  } else if (weights.reader.manifest() != nullptr && weights.model) {
    config = is_package ? Json() : huggingface_config(*weights.model);
    if (package != nullptr) {
      MOTLEY_ASSIGN(config, package->config());
    }
    const auto origin = origin_of(weights);
    if (is_package && origin && config.is_null()) {
      MOTLEY_ASSIGN(const CheckpointReader reader, CheckpointReader::open(*origin));
      MOTLEY_ASSIGN(WeightsOutline outline, reader.outline());
      config = std::move(outline.config);
    }
  }
  // The config.json of our own package checkpoints has no meaning for other programs.
  if (is_package && config == huggingface_config(*weights.model)) config = Json();
  return config.is_null() ? config : with_dtype(std::move(config), torch_dtype(format));
}

std::vector<NewTensor> new_tensors(const OpenedWeights& weights,
                                   const std::vector<StoredTensor>& stored) {
  std::vector<NewTensor> tensors;
  for (const StoredTensor& each : stored) {
    std::string name = each.outline.name;
    if (each.of_optimizer) name = name.substr(kAveragePrefix.size());
    const bool is_ours = weights.model && weights.model->kind != "package";
    tensors.push_back({is_ours ? huggingface_name(*weights.model, bare_weight_name(name)) : name,
                       each.outline.shape, [&reader = weights.reader, &each] {
                         return std::make_unique<StoredValues>(reader, each);
                       }});
  }
  return tensors;
}

}  // namespace

Result<std::vector<StoredTensor>> exported_tensors(const OpenedWeights& weights, bool averaged) {
  std::vector<StoredTensor> tensors = parameters_of(weights);
  if (averaged) MOTLEY_TRY(take_averages(weights, tensors));
  if (weights.reader.manifest() != nullptr || !weights.model) return tensors;
  TensorShapes shapes;
  for (const StoredTensor& tensor : tensors) shapes[tensor.outline.name] = tensor.outline.shape;
  MOTLEY_ASSIGN(const WeightMatch match,
                place_weights(*weights.model, {}, shapes, weights.config, weights.path.string()));
  std::erase_if(tensors, [&](const StoredTensor& tensor) {
    return std::ranges::find(match.places, tensor.outline.name, &WeightLocation::stored) ==
           match.places.end();
  });
  return tensors;
}

std::vector<NewTensor> exported_values(const OpenedWeights& weights,
                                       const std::vector<StoredTensor>& stored,
                                       const PackageExport* package,
                                       bool as_adapter,
                                       bool as_stored) {
  std::vector<NewTensor> tensors = new_tensors(weights, stored);
  if (package == nullptr) return tensors;
  if (as_adapter) {
    for (NewTensor& tensor : tensors) tensor.name = package->adapter_name(tensor.name);
    return tensors;
  }
  std::vector<NewTensor> others = package->untrained(as_stored);
  std::ranges::move(others, std::back_inserter(tensors));
  return tensors;
}

Result<WeightsFolder> exported_folder(const Arguments& arguments,
                                      const OpenedWeights& weights,
                                      const std::vector<StoredTensor>& stored,
                                      const PackageExport* package,
                                      const FormatRule& rule) {
  const bool is_adapter = package != nullptr && package->is_adapter();
  WeightsFolder folder{.tensors = exported_values(weights, stored, package, is_adapter,
                                                  /*as_stored=*/!arguments.has("dtype")),
                       .rule = rule};
  if (is_adapter) {
    folder.name = "adapter_model";
    folder.file_bytes_max = std::numeric_limits<std::uint64_t>::max();  // peft reads a single file
  } else {
    MOTLEY_ASSIGN(folder.file_bytes_max, max_file_bytes(arguments));
    MOTLEY_ASSIGN(folder.config, exported_config(arguments, weights, package, rule.format));
  }
  MOTLEY_ASSIGN(const std::vector<fs::path> companions, companions_of(arguments, weights));
  if (arguments.has("tokenizer")) add_files(folder.beside, companions);
  if (package != nullptr) add_files(folder.beside, package->files());
  add_files(folder.beside, companions);
  add_files(folder.beside, class_names_of(weights));
  return folder;
}

}  // namespace motley
