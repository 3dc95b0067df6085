// motley ckpt reshard.
#include <fmt/format.h>

#include <cstdio>

#include "base/json.h"
#include "base/system/privacy.h"
#include "checkpoint/convert/reshard.h"
#include "checkpoint/folders.h"
#include "cli/ckpt/commands.h"
#include "cli/ckpt/weights_inputs.h"
#include "cli/inputs.h"
#include "cli/work_progress.h"

namespace motley {
namespace {

constexpr std::int64_t kFilesMax = 10'000;

std::optional<ModelConfig> model_of_checkpoint(const Manifest& manifest,
                                               const std::string& source) {
  const auto config = saved_config_from_json(manifest.config, source);
  return config.ok() ? std::optional(config->model) : std::nullopt;
}

// Tensors are not split, so there cannot be more files than tensors.
Result<void> check_files(std::int64_t files, const Manifest& manifest) {
  std::size_t tensors = 0;
  for (const WrittenFile& file : manifest.files) {
    if (is_parameter_file(file.name)) tensors += file.tensor_hashes.size();
  }
  if (files <= static_cast<std::int64_t>(tensors)) return {};
  return Error{ErrorCode::kUsage,
               fmt::format("--files {} is more than the checkpoint has tensors", files),
               fmt::format("it has {} tensors of parameters, and tensors are not divided", tensors),
               fmt::format("use --files {} at most", tensors)};
}

Result<void> run_reshard(const Arguments& arguments) {
  Resharding request;
  MOTLEY_ASSIGN(request.destination, output_path_of(arguments));
  MOTLEY_TRY(required_value(arguments, "files"));
  MOTLEY_ASSIGN(const std::int64_t files, integer_value(arguments, "files", 1, kFilesMax));
  request.files = static_cast<int>(files);
  MOTLEY_ASSIGN(request.checkpoint, named_checkpoint(arguments.operand(0)));
  keep_files_private(request.checkpoint);
  MOTLEY_ASSIGN(const Manifest saved, read_manifest(request.checkpoint));
  MOTLEY_TRY(check_files(files, saved));
  request.order = parameter_order(model_of_checkpoint(saved, request.checkpoint.string()));
  WorkProgress watch;
  MOTLEY_ASSIGN(const Manifest manifest, reshard(request, watch));
  watch.clear();
  if (arguments.has("json")) {
    Json names = Json::array();
    for (const WrittenFile& file : manifest.files) {
      names.push_back({{"name", file.name}, {"bytes", file.bytes}, {"hash", file.hash}});
    }
    fmt::print("{}\n", Json{{"folder", request.destination.string()},
                            {"step", manifest.state.step},
                            {"parameter_hash", manifest.parameter_hash},
                            {"files", std::move(names)}}
                           .dump(2));
  } else {
    fmt::print("{}: step {} in {} file{} of parameters, parameter hash {}\n",
               request.destination.string(), manifest.state.step, files, files == 1 ? "" : "s",
               manifest.parameter_hash);
  }
  return {};
}

}  // namespace

Command ckpt_reshard_command() {
  CommandSpec spec{
      "ckpt reshard",
      "write a checkpoint with another number of files",
      {"RUN"},
      {output_option("FOLDER", "the new checkpoint; the path must not exist"),
       {"files", "N",
        "number of files of parameters, at most one per tensor, and as many of the optimizer's "
        "state"},
       json_option()},
      "RUN is a run's folder (its newest checkpoint is read), or a checkpoint. Tensors are\n"
      "distributed in the model's order so that the largest file is as small as possible; the\n"
      "parameter hash does not change, `ckpt verify` passes, and training can be resumed from it\n"
      "as from the old one: move it into a run's folder as checkpoints/step-N, with its step in\n"
      "that name. Memory does not grow with the model. An interrupted command leaves no output.\n\n"
      "Example\n"
      "  motley ckpt reshard runs/gpt --files 1 -o gpt-whole\n"};
  spec.needs = "-o FOLDER --files N";
  return {spec, run_reshard};
}

}  // namespace motley
