// motley ckpt average.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/json.h"
#include "checkpoint/convert/checkpoint_writer.h"
#include "checkpoint/convert/mean.h"
#include "checkpoint/convert/weights_folder.h"
#include "plan/quantity_text.h"
#include "tools/ckpt/commands.h"
#include "tools/ckpt/weights_inputs.h"
#include "tools/inputs.h"
#include "tools/terminal_watch.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

Error bad_weights(const Arguments& arguments) {
  return {ErrorCode::kUsage,
          fmt::format("--weights must be {} numbers of at least 0, not all 0, as in 1,2,1",
                      arguments.operands().size()),
          fmt::format("it is '{}'", excerpt(arguments.value("weights"))), ""};
}

Result<std::vector<double>> weights_of(const Arguments& arguments) {
  const std::size_t count = arguments.operands().size();
  if (!arguments.has("weights")) return std::vector<double>(count, 1.0);
  const std::string& text = arguments.value("weights");
  std::vector<double> weights;
  double sum = 0;
  for (const char* at = text.data(); at <= text.data() + text.size();) {
    double weight = 0;
    const auto [end, code] = std::from_chars(at, text.data() + text.size(), weight);
    const bool is_end = end == text.data() + text.size();
    if (code != std::errc{} || !std::isfinite(weight) || weight < 0 || (!is_end && *end != ',')) {
      return bad_weights(arguments);
    }
    weights.push_back(weight);
    sum += weight;
    at = end + 1;
  }
  if (weights.size() != count || !(sum > 0) || !std::isfinite(sum)) return bad_weights(arguments);
  return weights;
}

struct Inputs {
  std::vector<CheckpointReader> readers;
  std::vector<std::string> names;
  std::optional<Json> config;  // the first config.json
};

Result<Inputs> open_all(const Arguments& arguments, WorkWatch& watch) {
  Inputs inputs;
  for (const std::string& operand : arguments.operands()) {
    MOTLEY_ASSIGN(OpenedWeights weights, open_weights(operand, /*with_optimizer=*/false, watch));
    inputs.readers.push_back(std::move(weights.reader));
    inputs.names.push_back(weights.path.string());
    if (!inputs.config && !weights.config.is_null()) inputs.config = std::move(weights.config);
  }
  return inputs;
}

// The manifest of the newest of them; nullptr where not all are checkpoints. kConfig when they are
// of models that differ in more than names and shapes show, such as their heads.
Result<const Manifest*> newest_manifest(const Inputs& inputs) {
  const Manifest* newest = nullptr;
  for (std::size_t i = 0; i < inputs.readers.size(); ++i) {
    const Manifest* manifest = inputs.readers[i].manifest();
    if (manifest == nullptr) return nullptr;
    if (newest != nullptr && newest->state.model_hash != manifest->state.model_hash) {
      return Error{
          ErrorCode::kConfig, "these are not checkpoints of one model",
          fmt::format("{} is of the model {}, and {} of {}", inputs.names.front(),
                      newest->state.model_hash, inputs.names[i], manifest->state.model_hash),
          "a mean is taken of runs of one model"};
    }
    if (newest == nullptr || newest->state.step < manifest->state.step) newest = manifest;
  }
  return newest;
}

// Cuts as the files of weights are cut.
std::vector<std::size_t> ends_of(const std::vector<NewTensor>& tensors, std::uint64_t bytes_max) {
  std::vector<std::size_t> ends;
  std::size_t end = 0;
  for (const auto& part : parts_up_to(tensors, NumberFormat::kFp32, bytes_max)) {
    ends.push_back(end += part.size());
  }
  return ends;
}

Result<void> run_average(const Arguments& arguments) {
  MOTLEY_ASSIGN(const fs::path destination, output_place(arguments));
  MOTLEY_ASSIGN(const std::vector<double> weights, weights_of(arguments));
  MOTLEY_ASSIGN(const std::uint64_t file_bytes_max, max_file_bytes(arguments));
  TerminalWatch watch;
  MOTLEY_ASSIGN(const Inputs inputs, open_all(arguments, watch));
  MOTLEY_ASSIGN(const Manifest* const newest, newest_manifest(inputs));
  MOTLEY_ASSIGN(std::vector<NewTensor> tensors, mean_of(inputs.readers, inputs.names, weights));
  const std::uint64_t bytes = bytes_of(tensors, NumberFormat::kFp32);
  if (newest == nullptr) {
    const WeightsFolder folder{.tensors = std::move(tensors),
                               .rule = {},
                               .file_bytes_max = file_bytes_max,
                               .config = inputs.config.value_or(Json()),
                               .beside = companions_in(inputs.names.front())};
    MOTLEY_TRY(write_weights_folder(destination, folder, watch));
  } else {
    NewCheckpoint checkpoint{.state = newest->state,
                             .config = newest->config,
                             .model_config = inputs.config.value_or(Json()),
                             .parameters = std::move(tensors),
                             .moments = {},
                             .parameter_ends = {},
                             .moment_ends = {}};
    checkpoint.state.optimizer = kNoOptimizer;
    checkpoint.parameter_ends = ends_of(checkpoint.parameters, file_bytes_max);
    MOTLEY_TRY(write_checkpoint(destination, checkpoint, watch));
  }
  watch.clear();
  if (arguments.has("json")) {
    fmt::print("{}\n", Json{{"path", destination.string()},
                            {"of", inputs.names},
                            {"weights", weights},
                            {"bytes", bytes},
                            {"is_checkpoint", newest != nullptr}}
                           .dump(2));
    return {};
  }
  fmt::print("{}: the mean of {}, {}\n", destination.string(), inputs.names.size(),
             bytes_text(static_cast<double>(bytes)));
  return {};
}

}  // namespace

Command ckpt_average_command() {
  CommandSpec spec{
      "ckpt average",
      "the mean of the parameters of several checkpoints",
      {"A", "B"},
      {output_option("OUT", "the new folder; nothing may be there yet"),
       {"weights", "W,W,…", "how much each counts for, relative to the others (default 1 each)"},
       max_file_option(),
       json_option()},
      "A, B, … are runs' folders, whose newest checkpoints are read, checkpoints, or folders of\n"
      "weights, all of one model; else exit status 3. Sums are made in double and rounded to fp32\n"
      "once. Of checkpoints OUT is one too, without optimizer's state: `motley generate`,\n"
      "`ckpt export` and model.init_from take it, `train --resume` does not.\n\n"
      "Example\n"
      "  motley ckpt average runs/gpt/checkpoints/step-000{800,900} runs/gpt -o gpt-mean\n"};
  spec.needs = "-o OUT";
  spec.more = true;
  return {spec, run_average};
}

}  // namespace motley
