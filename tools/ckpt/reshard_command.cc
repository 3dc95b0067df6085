// motley ckpt reshard.
#include <fmt/format.h>

#include <cstdio>

#include "base/json.h"
#include "base/system/privacy.h"
#include "checkpoint/convert/reshard.h"
#include "tools/ckpt/commands.h"
#include "tools/ckpt/weights_inputs.h"
#include "tools/inputs.h"
#include "tools/terminal_watch.h"

namespace motley {
namespace {

constexpr std::int64_t kFilesMax = 10'000;

std::optional<ModelConfig> model_of_checkpoint(const std::filesystem::path& checkpoint) {
  const auto manifest = read_manifest(checkpoint);
  if (!manifest.ok()) return {};
  const auto config = saved_config_from_json(manifest->config, checkpoint.string());
  return config.ok() ? std::optional(config->model) : std::nullopt;
}

Result<void> run_reshard(const Arguments& arguments) {
  Resharding request;
  MOTLEY_ASSIGN(request.destination, output_place(arguments));
  MOTLEY_TRY(required_value(arguments, "files"));
  MOTLEY_ASSIGN(const std::int64_t files, integer_value(arguments, "files", 1, kFilesMax));
  request.files = static_cast<int>(files);
  MOTLEY_ASSIGN(request.checkpoint, named_checkpoint(arguments.operand(0)));
  keep_files_private(request.checkpoint);
  request.order = parameter_order(model_of_checkpoint(request.checkpoint));
  TerminalWatch watch;
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
      "the same checkpoint in another number of files",
      {"RUN"},
      {output_option("FOLDER", "the new checkpoint; nothing may be there yet"),
       {"files", "N", "how many files of parameters, and as many of the optimizer's state"},
       json_option()},
      "RUN is a run's folder, whose newest checkpoint is read, or a checkpoint. Whole tensors\n"
      "are divided in the model's order so that the largest file is as small as can be; the\n"
      "parameter hash stays, `ckpt verify` passes, and a training goes on from it as from the\n"
      "old one: put it into a run's folder as checkpoints/step-N, with its step in that name.\n"
      "Memory does not grow with the model. An interrupted command leaves nothing that counts.\n\n"
      "Example\n"
      "  motley ckpt reshard runs/gpt --files 1 -o gpt-whole\n"};
  spec.needs = "-o FOLDER --files N";
  return {spec, run_reshard};
}

}  // namespace motley
