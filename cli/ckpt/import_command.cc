// motley ckpt import.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <utility>

#include "base/json.h"
#include "checkpoint/convert/difference.h"
#include "checkpoint/convert/weights_folder.h"
#include "cli/ckpt/commands.h"
#include "cli/ckpt/weights_inputs.h"
#include "cli/inputs.h"
#include "cli/work_progress.h"
#include "models/spec/hf_config.h"
#include "models/spec/initial_weights.h"
#include "models/spec/model_spec.h"
#include "plan/quantity_text.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

using Stored = std::map<std::string, StoredTensor>;

Stored stored_tensors(const OpenedWeights& weights) {
  Stored stored;
  for (StoredTensor& tensor : weights.reader.tensors()) {
    std::string name = tensor.outline.name;
    if (!tensor.of_optimizer) stored.emplace(std::move(name), std::move(tensor));
  }
  return stored;
}

Result<WeightMatch> placed(const OpenedWeights& weights,
                           const Stored& stored,
                           const ResolvedConfig& resolved) {
  TensorShapes shapes;
  for (const auto& [name, tensor] : stored) shapes.emplace(name, tensor.outline.shape);
  auto match = place_weights(resolved.config.model, resolved.origins, shapes, weights.config,
                             weights.path.string());
  if (match.ok()) return match;
  Error error = std::move(match).error();
  error.remedy =
      "use the configuration of that model: `motley config --from FOLDER` prints the [model] "
      "section of a gpt2, `motley package show` the layers of a package";
  return error;
}

// A head stored beside the embedding that it is tied to must equal that embedding.
Result<void> check_tied_copy(const OpenedWeights& weights,
                             const Stored& stored,
                             const WeightMatch& match,
                             const ModelSpec& model,
                             WorkObserver& watch) {
  if (!match.tied_copy) return {};
  const std::string parameter = model.tied_pair()->parameter;
  const auto location = std::ranges::find(match.places, parameter, &WeightLocation::name);
  const StoredTensor& owner = stored.at(location->stored);
  const StoredTensor& copy = stored.at(match.tied_copy->stored);
  watch.begin("comparing the head", value_count(owner.outline) * sizeof(float));
  MOTLEY_ASSIGN(const TensorDifference difference,
                difference_of_tensors(weights.reader, owner, weights.reader, copy, watch));
  if (difference.differing == 0) return {};
  return Error{
      ErrorCode::kConfig,
      fmt::format("the weights are of another model, {}", weights.path.string()),
      fmt::format("the configuration ties the head to '{}', and {} of the {} values of '{}' are "
                  "others",
                  parameter, difference.differing, difference.values, copy.outline.name),
      "use a configuration with an untied head"};
}

std::vector<NewTensor> imported_tensors(const OpenedWeights& weights,
                                        const Stored& stored,
                                        const WeightMatch& match) {
  std::vector<NewTensor> tensors;
  for (const WeightLocation& location : match.places) {
    const auto open = [&reader = weights.reader, &from = stored.at(location.stored),
                       is_transposed = location.transposed]() -> std::unique_ptr<ValueStream> {
      if (is_transposed) return std::make_unique<TransposedValues>(reader, from);
      return std::make_unique<StoredValues>(reader, from);
    };
    tensors.push_back({location.name, location.shape, open});
  }
  return tensors;
}

// The configuration that model.init_from compares; for a package that of the weights, for a later
// export.
Json imported_config(const OpenedWeights& weights, const ModelConfig& model) {
  Json config = model.kind == "package" ? weights.config : huggingface_config(model);
  if (!config.is_null()) config["torch_dtype"] = torch_dtype(FloatFormat::kFp32);
  return config;
}

Result<void> run_import(const Arguments& arguments) {
  MOTLEY_ASSIGN(const fs::path destination, output_path_of(arguments));
  MOTLEY_ASSIGN(const std::uint64_t file_bytes_max, max_file_bytes(arguments));
  MOTLEY_ASSIGN(const ResolvedConfig resolved, read_config(arguments.operand(1), arguments));
  const ModelConfig& model = resolved.config.model;
  auto spec = describe_model(model);
  if (!spec.ok()) return with_key_position(std::move(spec).error(), resolved);
  WorkProgress watch;
  MOTLEY_ASSIGN(const OpenedWeights weights,
                open_weights(arguments.operand(0), /*with_optimizer=*/false, watch));
  const Stored stored = stored_tensors(weights);
  MOTLEY_ASSIGN(const WeightMatch match, placed(weights, stored, resolved));
  MOTLEY_TRY(check_tied_copy(weights, stored, match, *spec, watch));
  const WeightsFolder folder{.tensors = imported_tensors(weights, stored, match),
                             .rule = {},
                             .file_bytes_max = file_bytes_max,
                             .config = imported_config(weights, model),
                             .beside = companions_in(weights.folder())};
  MOTLEY_ASSIGN(const std::vector<WrittenFile> files,
                write_weights_folder(destination, folder, watch));
  watch.clear();
  const auto transposed = std::ranges::count_if(match.places, &WeightLocation::transposed);
  if (arguments.has("json")) {
    Json list = Json::array();
    for (const WrittenFile& file : files) {
      list.push_back({{"name", file.name}, {"bytes", file.bytes}, {"hash", file.hash}});
    }
    fmt::print("{}\n", Json{{"path", destination.string()},
                            {"parameters", spec->parameter_count()},
                            {"tensors", match.places.size()},
                            {"transposed", transposed},
                            {"files", std::move(list)}}
                           .dump(2));
    return {};
  }
  fmt::print("{}: {} parameters in {} tensors{}\nto train from them: --set model.init_from={}\n",
             destination.string(), count_text(spec->parameter_count()), match.places.size(),
             transposed == 0 ? "" : fmt::format(", {} of them transposed", transposed),
             destination.string());
  return {};
}

}  // namespace

Command ckpt_import_command() {
  CommandSpec spec{
      "ckpt import",
      "convert Hugging Face weights for the model of a configuration",
      {"FOLDER", "CONFIG"},
      {output_option("OUT", "the new folder of weights, for model.init_from"), set_option(),
       max_file_option(), json_option()},
      "FOLDER is a folder or file of safetensors in fp32, fp16 or bf16, in one file or several,\n"
      "with or without \"transformer.\" or \"model.\" before its names, of a GPT-2 or a Llama, "
      "say.\n"
      "Writes the parameters of CONFIG's model (gpt2, or a package) in fp32 under its names,\n"
      "with the tokenizer's files. Masks and other buffers are left out; a tied head may be\n"
      "absent or present. The linear weights of a GPT-2 are transposed if the model stores them\n"
      "in the other order, which is detected from those that are not square. One error lists\n"
      "all tensors that do not fit, exit status 3.\n\n"
      "Examples\n"
      "  motley ckpt import gpt2 gpt2.toml -o gpt2-weights\n"
      "  motley train gpt2.toml --set model.init_from=gpt2-weights\n"};
  spec.needs = "-o OUT";
  return {spec, run_import};
}

}  // namespace motley
