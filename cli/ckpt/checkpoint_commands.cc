// motley ckpt list | show, and the table of all ckpt commands.
#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "base/json.h"
#include "base/system/files.h"
#include "checkpoint/folders.h"
#include "checkpoint/inspect.h"
#include "checkpoint/replication/checkpoint_metadata.h"
#include "cli/ckpt/commands.h"
#include "cli/ckpt/tensor_listing.h"
#include "cli/ckpt/weights_inputs.h"
#include "cli/inputs.h"
#include "cli/work_progress.h"

namespace motley {
namespace {

// Prints the text, or the JSON with --json.
template <class Text, class Twin>
Result<void> print(const Arguments& arguments, Text make_text, Twin make_json) {
  if (arguments.has("json")) {
    MOTLEY_ASSIGN(const Json json, make_json());
    fmt::print("{}\n", json.dump(2));
    return {};
  }
  MOTLEY_ASSIGN(const std::string text, make_text());
  std::fputs(text.c_str(), stdout);
  return {};
}

Result<void> run_list(const Arguments& arguments) {
  const std::filesystem::path run = arguments.operand(0);
  MOTLEY_TRY(check_is_run(run));
  MOTLEY_TRY(path_exists(checkpoint_folder(run, 0)));  // fails if the folder is not readable
  const auto checkpoints = list_checkpoints(run);
  return print(
      arguments, [&] { return Result<std::string>(format_checkpoint_list(checkpoints)); },
      [&] { return Result<Json>(checkpoint_list_to_json(checkpoints)); });
}

// Weights that are not a Motley checkpoint.
Result<OpenedWeights> open_unverified(const std::filesystem::path& path) {
  MOTLEY_ASSIGN(CheckpointReader reader, CheckpointReader::open(path));
  return describe_weights(path, std::move(reader));
}

Result<void> show_foreign(const Arguments& arguments, const std::filesystem::path& path) {
  MOTLEY_ASSIGN(const OpenedWeights weights, open_unverified(path));
  return print(
      arguments,
      [&] {
        return Result<std::string>(
            fmt::format("weights  {}\n\n{}", path.string(), tensors_text(weights)));
      },
      [&] {
        return Result<Json>({{"folder", path.string()}, {"layers", layers_to_json(weights)}});
      });
}

Result<void> run_show(const Arguments& arguments) {
  MOTLEY_ASSIGN(const std::filesystem::path path, named_weights(arguments.operand(0)));
  if (!has_manifest(path)) return show_foreign(arguments, path);
  const auto text = [&]() -> Result<std::string> {
    MOTLEY_ASSIGN(std::string all, format_checkpoint(path));
    if (!arguments.has("tensors")) return all;
    MOTLEY_ASSIGN(const OpenedWeights weights, open_unverified(path));
    return fmt::format("{}written as      {}\n\n{}", all, plan_text(*weights.reader.manifest()),
                       tensors_text(weights));
  };
  const auto json = [&]() -> Result<Json> {
    MOTLEY_ASSIGN(Json all, checkpoint_to_json(path));
    MOTLEY_ASSIGN(const Manifest manifest, read_manifest(path));
    all["plan"] = plan_fingerprint_to_json(manifest);
    if (is_partial_copy(path)) return all;  // shapes are in files that are not here
    MOTLEY_ASSIGN(const OpenedWeights weights, open_unverified(path));
    all["layers"] = layers_to_json(weights);
    return all;
  };
  return print(arguments, text, json);
}

}  // namespace

std::vector<Command> checkpoint_commands() {
  return {
      {{"ckpt list",
        "list the checkpoints of a run",
        {"RUN"},
        {json_option()},
        "Lists the committed checkpoints in a run's folder, oldest first.\n"},
       run_list},
      {{"ckpt show",
        "show the content of a checkpoint",
        {"RUN"},
        {{"tensors", "", "also list the layers and their tensors, and the plan that wrote them"},
         json_option()},
        "RUN is a run's folder (its newest checkpoint is shown), a checkpoint, or a folder or\n"
        "file of weights (its tensors are listed).\n"
        "Prints step, model, sizes and the parameter hash, which is the same for the same\n"
        "parameters however they were split over machines. --json has all details.\n"
        "If machines have their own folders, it shows which machine wrote each file and which\n"
        "files are here, without querying the machines; --tensors then needs `ckpt gather`.\n"},
       run_show},
      ckpt_verify_command(),
      ckpt_diff_command(),
      ckpt_reshard_command(),
      ckpt_export_command(),
      ckpt_import_command(),
      ckpt_prune_command(),
      ckpt_gather_command(),
      ckpt_repair_command(),
  };
}

}  // namespace motley
