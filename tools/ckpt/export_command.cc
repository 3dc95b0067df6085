// motley ckpt export.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>
#include <system_error>
#include <utility>

#include "base/json.h"
#include "checkpoint/convert/weights_folder.h"
#include "checkpoint/weight_names.h"
#include "models/spec/hf_config.h"
#include "models/spec/initial_weights.h"
#include "plan/quantity_text.h"
#include "tools/ckpt/commands.h"
#include "tools/ckpt/weights_inputs.h"
#include "tools/inputs.h"
#include "tools/terminal_watch.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFileEnding = ".safetensors";

Result<NumberRule> number_rule(const Arguments& arguments) {
  NumberRule rule{.saturates = arguments.has("saturate")};
  if (!arguments.has("dtype")) return rule;
  const auto format = parse_number_format(arguments.value("dtype"));
  if (!format) {
    return Error{ErrorCode::kUsage, "--dtype must be fp32, fp16 or bf16",
                 fmt::format("it is '{}'", excerpt(arguments.value("dtype"))), ""};
  }
  rule.format = *format;
  return rule;
}

// The folder of model.init_from, where that is on this machine.
std::optional<fs::path> origin_of(const OpenedWeights& weights) {
  if (weights.reader.manifest() == nullptr) return weights.folder();
  if (!weights.model || weights.model->init_from.empty()) return {};
  std::error_code code;
  const fs::path origin = weights.model->init_from;
  if (fs::is_directory(origin, code)) return origin;
  return fs::is_regular_file(origin, code) ? std::optional(origin.parent_path()) : std::nullopt;
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
  return Error{ErrorCode::kConfig, fmt::format("no tokenizer lies in {}", folder.string()),
               fmt::format("it has none of {}", fmt::join(kHuggingFaceCompanions, ", ")),
               "name the folder of the model whose tokenizer it is"};
}

// config.json with the type of the numbers that are written; null where the family has none: a
// package's, unless it began from weights that have one.
Result<Json> exported_config(const OpenedWeights& weights, NumberFormat format) {
  Json config = weights.config;
  const bool is_package = weights.model && weights.model->kind == "package";
  if (weights.reader.manifest() != nullptr && weights.model) {
    config = is_package ? Json() : huggingface_config(*weights.model);
    const auto origin = origin_of(weights);
    if (is_package && origin) {
      MOTLEY_ASSIGN(const CheckpointReader reader, CheckpointReader::open(*origin));
      MOTLEY_ASSIGN(WeightsOutline outline, reader.outline());
      config = std::move(outline.config);
    }
  }
  // What our own checkpoints of a package have says nothing to others.
  if (is_package && config == huggingface_config(*weights.model)) config = Json();
  if (config.is_null()) return config;
  config["torch_dtype"] = torch_dtype(format);
  if (config.contains("dtype")) config["dtype"] = torch_dtype(format);  // as newer versions write
  return config;
}

// Of weights that are ours or of a family of ours exactly the model's parameters, without buffers
// that lie beside; of others all.
Result<std::vector<StoredTensor>> exported_tensors(const OpenedWeights& weights) {
  std::vector<StoredTensor> tensors = parameters_of(weights);
  if (weights.reader.manifest() != nullptr || !weights.model) return tensors;
  TensorShapes shapes;
  for (const StoredTensor& tensor : tensors) shapes[tensor.outline.name] = tensor.outline.shape;
  MOTLEY_ASSIGN(const WeightMatch match,
                place_weights(*weights.model, {}, shapes, weights.config, weights.path.string()));
  std::erase_if(tensors, [&](const StoredTensor& tensor) {
    return std::ranges::find(match.places, tensor.outline.name, &WeightPlace::stored) ==
           match.places.end();
  });
  return tensors;
}

std::vector<NewTensor> new_tensors(const OpenedWeights& weights,
                                   const std::vector<StoredTensor>& stored) {
  std::vector<NewTensor> tensors;
  for (const StoredTensor& each : stored) {
    const std::string& name = each.outline.name;
    const bool is_ours = weights.model && weights.model->kind != "package";
    tensors.push_back({is_ours ? huggingface_name(*weights.model, bare_weight_name(name)) : name,
                       each.outline.shape, [&reader = weights.reader, &each] {
                         return std::make_unique<StoredValues>(reader, each);
                       }});
  }
  return tensors;
}

void report_export(const Arguments& arguments,
                   const fs::path& destination,
                   const std::vector<WrittenFile>& files,
                   const NumberRule& rule) {
  std::uint64_t bytes = 0;
  std::vector<std::string> names;
  Json list = Json::array();
  for (const WrittenFile& file : files) {
    bytes += file.bytes;
    names.push_back(file.name);
    list.push_back({{"name", file.name}, {"bytes", file.bytes}, {"hash", file.hash}});
  }
  if (arguments.has("json")) {
    fmt::print("{}\n", Json{{"path", destination.string()},
                            {"dtype", torch_dtype(rule.format)},
                            {"bytes", bytes},
                            {"files", std::move(list)}}
                           .dump(2));
    return;
  }
  fmt::print("{}: {} of {}: {}\n", destination.string(), bytes_text(static_cast<double>(bytes)),
             torch_dtype(rule.format), fmt::join(names, ", "));
}

Result<void> run_export(const Arguments& arguments) {
  MOTLEY_ASSIGN(const fs::path destination, output_place(arguments));
  MOTLEY_ASSIGN(const NumberRule rule, number_rule(arguments));
  const bool one_file = arguments.has("one-file");
  for (const char* other : {"tokenizer", "max-file"}) {
    if (one_file && arguments.has(other)) {
      return Error{ErrorCode::kUsage, fmt::format("--one-file and --{} do not go together", other),
                   "a file holds tensors alone, all of them", "leave one of the two out"};
    }
  }
  if (!one_file && destination.extension() == kFileEnding) {
    return Error{
        ErrorCode::kUsage,
        fmt::format("{} has the name of a file, and is to be a folder", destination.string()),
        "a file is written only with --one-file", "add --one-file, or name a folder"};
  }
  MOTLEY_ASSIGN(const std::uint64_t file_bytes_max, max_file_bytes(arguments));
  TerminalWatch watch;
  MOTLEY_ASSIGN(const OpenedWeights weights,
                open_weights(arguments.operand(0), /*with_optimizer=*/false, watch));
  MOTLEY_ASSIGN(const std::vector<StoredTensor> stored, exported_tensors(weights));
  const std::vector<NewTensor> tensors = new_tensors(weights, stored);
  std::vector<WrittenFile> files;
  if (one_file) {
    MOTLEY_ASSIGN(WrittenFile file, write_weights_file(destination, tensors, rule, watch));
    files.push_back(std::move(file));
  } else {
    WeightsFolder folder{.tensors = tensors, .rule = rule, .file_bytes_max = file_bytes_max};
    MOTLEY_ASSIGN(folder.config, exported_config(weights, rule.format));
    MOTLEY_ASSIGN(folder.beside, companions_of(arguments, weights));
    MOTLEY_ASSIGN(files, write_weights_folder(destination, folder, watch));
  }
  watch.clear();
  report_export(arguments, destination, files, rule);
  return {};
}

}  // namespace

Command ckpt_export_command() {
  CommandSpec spec{
      "ckpt export",
      "the parameters as Hugging Face opens them",
      {"RUN"},
      {output_option("PATH", "the new folder, or with --one-file the file"),
       {"dtype", "TYPE", "fp32, fp16 or bf16, rounded to nearest (default fp32)"},
       {"saturate", "", "what is beyond fp16 or bf16 becomes their largest number, not an error"},
       {"one-file", "", "one safetensors file in the place of a folder"},
       max_file_option(),
       {"tokenizer", "FOLDER",
        "copy the tokenizer's files from here (default: from the folder of "
        "model.init_from, where there are any)"},
       json_option()},
      "RUN is a run's folder, whose newest checkpoint is read, a checkpoint, or a folder of\n"
      "weights. Writes model.safetensors, or several files and their index where one would grow\n"
      "beyond --max-file, with config.json where the family has one (gpt2; a package has that of\n"
      "the weights it began from). Names are those that transformers saves, of a package its own.\n"
      "Memory does not grow with the model. An interrupted command leaves nothing that counts.\n\n"
      "Examples\n"
      "  motley ckpt export runs/gpt -o gpt-half --dtype bf16\n"
      "  motley ckpt export runs/gpt -o gpt.safetensors --one-file\n"};
  spec.needs = "-o PATH";
  return {spec, run_export};
}

}  // namespace motley
