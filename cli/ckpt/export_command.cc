// motley ckpt export.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/json.h"
#include "checkpoint/folders.h"
#include "cli/ckpt/commands.h"
#include "cli/ckpt/exported_folder.h"
#include "cli/ckpt/package_export.h"
#include "cli/ckpt/weights_inputs.h"
#include "cli/inputs.h"
#include "cli/work_progress.h"
#include "plan/quantity_text.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFileEnding = ".safetensors";

Result<FormatRule> number_rule(const Arguments& arguments) {
  FormatRule rule{.saturates = arguments.has("saturate")};
  if (!arguments.has("dtype")) return rule;
  const auto format = parse_float_format(arguments.value("dtype"));
  if (!format) {
    return Error{ErrorCode::kUsage, "--dtype must be fp32, fp16 or bf16",
                 fmt::format("it is '{}'", excerpt(arguments.value("dtype"))), ""};
  }
  rule.format = *format;
  return rule;
}

bool is_among(const std::vector<WrittenFile>& files, const std::string& part) {
  return std::ranges::any_of(
      files, [&](const WrittenFile& file) { return file.name.find(part) != std::string::npos; });
}

// Files that other programs expect and that the folder lacks, with their possible sources.
std::vector<std::string> lacks(const std::vector<WrittenFile>& files, bool is_package) {
  if (is_among(files, "adapter_config.json")) return {};
  std::vector<std::string> lines;
  if (!is_among(files, kModelConfigName)) {
    lines.push_back(fmt::format(
        "no config.json: {}. transformers needs one; --config FOLDER copies one from there",
        is_package ? "the package has none; motley.export stores it for a transformers model"
                   : "these weights have none"));
  } else if (is_package && !is_among(files, "token") && !is_among(files, "vocab") &&
             !is_among(files, "processor")) {
    lines.emplace_back(
        "no tokenizer or processor: the package has none. --tokenizer FOLDER copies its files from "
        "there");
  }
  return lines;
}

void report_export(const Arguments& arguments,
                   const fs::path& destination,
                   const std::vector<WrittenFile>& files,
                   const FormatRule& rule,
                   const std::vector<std::string>& lacking) {
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
                            {"files", std::move(list)},
                            {"lacks", lacking}}
                           .dump(2));
    return;
  }
  fmt::print("{}: {} of {}: {}\n", destination.string(), bytes_text(static_cast<double>(bytes)),
             torch_dtype(rule.format), fmt::join(names, ", "));
  for (const std::string& line : lacking) fmt::print("{}\n", line);
}

Result<void> run_export(const Arguments& arguments) {
  MOTLEY_ASSIGN(const fs::path destination, output_path_of(arguments));
  MOTLEY_ASSIGN(const FormatRule rule, number_rule(arguments));
  const bool one_file = arguments.has("one-file");
  for (const char* other : {"tokenizer", "max-file", "config"}) {
    if (one_file && arguments.has(other)) {
      return Error{ErrorCode::kUsage, fmt::format("--one-file and --{} exclude each other", other),
                   "a single file contains only the tensors, all of them",
                   "leave one of the two out"};
    }
  }
  if (!one_file && destination.extension() == kFileEnding) {
    return Error{
        ErrorCode::kUsage,
        fmt::format("{} has the name of a file, but a folder is written", destination.string()),
        "a file is written only with --one-file", "add --one-file, or give the path of a folder"};
  }
  MOTLEY_TRY(max_file_bytes(arguments));
  WorkProgress watch;
  MOTLEY_ASSIGN(const OpenedWeights weights,
                open_weights(arguments.operand(0), /*with_optimizer=*/arguments.has("ema"), watch));
  const bool is_package = weights.model && weights.model->kind == "package";
  std::optional<PackageExport> package;
  if (is_package && weights.reader.manifest() != nullptr) {
    const std::string given = arguments.has("package") ? arguments.value("package") : "";
    MOTLEY_ASSIGN(package, PackageExport::open(weights, given));
  } else if (arguments.has("package")) {
    return Error{ErrorCode::kUsage, "--package is for checkpoints of packages",
                 fmt::format("{} is none", weights.path.string()), "leave it out"};
  }
  const PackageExport* const from = package ? &*package : nullptr;
  MOTLEY_ASSIGN(const std::vector<StoredTensor> stored,
                exported_tensors(weights, arguments.has("ema")));
  std::vector<WrittenFile> files;
  if (one_file) {
    MOTLEY_ASSIGN(WrittenFile file,
                  write_weights_file(destination,
                                     exported_values(weights, stored, from, /*as_adapter=*/false,
                                                     /*as_stored=*/!arguments.has("dtype")),
                                     rule, watch));
    files.push_back(std::move(file));
  } else {
    MOTLEY_ASSIGN(const WeightsFolder folder,
                  exported_folder(arguments, weights, stored, from, rule));
    MOTLEY_ASSIGN(files, write_weights_folder(destination, folder, watch));
  }
  watch.clear();
  const auto lacking = one_file ? std::vector<std::string>{} : lacks(files, is_package);
  report_export(arguments, destination, files, rule, lacking);
  return {};
}

}  // namespace

Command ckpt_export_command() {
  CommandSpec spec{
      "ckpt export",
      "export the parameters in the format of Hugging Face",
      {"RUN"},
      {output_option("PATH", "the new folder, or with --one-file the file"),
       {"dtype", "TYPE",
        "fp32, fp16 or bf16, rounded to nearest (default: fp32, and frozen weights of a package in "
        "their type there)"},
       {"saturate", "", "clamp values outside the range of fp16 or bf16 instead of failing"},
       {"ema", "", "the average of the weights over the run (train.ema) instead of the last ones"},
       {"one-file", "", "one safetensors file instead of a folder"},
       max_file_option(),
       {"tokenizer", "FOLDER",
        "copy the tokenizer's files from this folder (default: those in the package, or in the "
        "folder of model.init_from)"},
       {"config", "FOLDER", "copy config.json from this folder"},
       {"package", "FOLDER", "the trained package, if it is not at model.path"},
       json_option()},
      "RUN is a run's folder (its newest checkpoint is read), a checkpoint, or a folder of\n"
      "weights; RUN/checkpoints/best is the one with the lowest held-out loss, if the run has\n"
      "checkpoint.keep_best. Writes model.safetensors, or several files and their index if one\n"
      "would exceed --max-file, with config.json if there is one (gpt2; a package of a\n"
      "transformers model contains it, and its tokenizer's files), and reports missing files.\n"
      "Tensors have the names of transformers, or those of the package. The export of a package\n"
      "includes frozen weights and buffers; a peft adapter becomes adapter_model.safetensors, as\n"
      "peft loads it.\n"
      "Memory does not grow with the model. An interrupted command leaves no output.\n\n"
      "Examples\n"
      "  motley ckpt export runs/gpt -o gpt-half --dtype bf16\n"
      "  motley ckpt export runs/gpt/checkpoints/best -o gpt-best\n"
      "  motley ckpt export runs/gpt -o gpt.safetensors --one-file\n"};
  spec.needs = "-o PATH";
  return {spec, run_export};
}

}  // namespace motley
