#include "cli/ckpt/weights_inputs.h"

#include <algorithm>
#include <map>
#include <system_error>
#include <utility>

#include "base/system/files.h"
#include "base/system/privacy.h"
#include "checkpoint/convert/new_output.h"
#include "checkpoint/folders.h"
#include "checkpoint/weight_names.h"
#include "cli/inputs.h"
#include "models/spec/hf_config.h"
#include "models/spec/model_spec.h"
#include "run_config/config_io.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

bool holds_weights(const fs::path& folder) {
  std::error_code code;
  fs::directory_iterator it(folder, code);
  for (; !code && it != fs::directory_iterator(); it.increment(code)) {
    const std::string name = it->path().filename().string();
    if (name == kIndexName || name.ends_with(".safetensors")) return true;
  }
  return false;
}

std::optional<ModelConfig> model_of(const CheckpointReader& reader,
                                    const Json& config,
                                    const std::string& source) {
  if (const Manifest* manifest = reader.manifest()) {
    auto saved = saved_config_from_json(manifest->config, source);
    return saved.ok() ? std::optional(saved->model) : std::nullopt;
  }
  if (config.is_null()) return {};
  auto model = model_of_huggingface(config, source);
  return model.ok() ? std::optional(*model) : std::nullopt;
}

}  // namespace

OptionSpec output_option(const std::string& value, const std::string& help) {
  return {.name = "output", .value = value, .help = help, .letter = 'o'};
}

Result<fs::path> output_path_of(const Arguments& arguments) {
  MOTLEY_ASSIGN(fs::path location, required_value(arguments, "output"));
  MOTLEY_TRY(NewOutput::check_free(location));
  return location;
}

OptionSpec max_file_option() {
  return {"max-file", "SIZE", "largest size of a file (default 5GB)"};
}

Result<std::uint64_t> max_file_bytes(const Arguments& arguments) {
  constexpr std::uint64_t kDefault = 5'000'000'000;
  if (!arguments.has("max-file")) return kDefault;
  return bytes_value(arguments, "max-file");
}

Result<fs::path> named_weights(const fs::path& named) {
  MOTLEY_ASSIGN(const fs::path path, checkpoint_by_word(named));
  MOTLEY_TRY(check_exists(path));
  std::error_code code;
  if (!fs::is_directory(path, code)) return path;
  return !has_manifest(path) && holds_weights(path) ? Result<fs::path>(path)
                                                    : named_checkpoint(path);
}

fs::path OpenedWeights::folder() const {
  std::error_code code;
  if (fs::is_directory(path, code)) return path;
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

Result<OpenedWeights> open_weights(const fs::path& named,
                                   bool with_optimizer,
                                   WorkObserver& watch) {
  MOTLEY_ASSIGN(fs::path path, named_weights(named));
  if (has_manifest(path)) {
    keep_files_private(path);
    MOTLEY_TRY(with_optimizer ? verify_checkpoint(path, &watch) : verify_parameters(path, &watch));
  }
  MOTLEY_ASSIGN(CheckpointReader reader, CheckpointReader::open(path));
  return describe_weights(std::move(path), std::move(reader));
}

Result<OpenedWeights> describe_weights(fs::path path, CheckpointReader reader) {
  MOTLEY_ASSIGN(WeightsOutline outline, reader.outline());
  auto model = model_of(reader, outline.config, outline.source);
  return OpenedWeights{std::move(path), std::move(reader), std::move(outline.config),
                       std::move(model)};
}

std::vector<std::string> parameter_order(const std::optional<ModelConfig>& model) {
  std::vector<std::string> order;
  if (!model) return order;
  const auto spec = describe_model(*model);
  if (!spec.ok()) return order;
  for (const LayerSpec& layer : spec->layers) {
    for (const ParameterSpec& parameter : layer.parameters) {
      if (!parameter.tied_use) order.push_back(parameter.name);
    }
  }
  return order;
}

std::vector<StoredTensor> parameters_of(const OpenedWeights& weights) {
  std::map<std::string, std::size_t> places;
  for (const std::string& name : parameter_order(weights.model)) {
    places.emplace(bare_weight_name(name), places.size());
  }
  std::vector<StoredTensor> tensors = weights.reader.tensors();
  std::erase_if(tensors, [](const StoredTensor& tensor) { return tensor.of_optimizer; });
  std::ranges::stable_sort(tensors, {}, [&](const StoredTensor& tensor) {
    const auto found = places.find(bare_weight_name(tensor.outline.name));
    return found == places.end() ? places.size() : found->second;
  });
  return tensors;
}

std::vector<fs::path> companions_in(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const char* name : huggingface_companions()) {
    std::error_code code;
    if (fs::is_regular_file(folder / name, code)) found.push_back(folder / name);
  }
  return found;
}

}  // namespace motley
