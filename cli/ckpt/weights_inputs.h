// Inputs of the commands for checkpoints and weights: the named paths, and the model of the
// weights.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "cli/arguments.h"
#include "run_config/config.h"

namespace motley {

[[nodiscard]] OptionSpec output_option(const std::string& value, const std::string& help);
[[nodiscard]] OptionSpec max_file_option();

// The path of --output. kConfig if it already exists.
[[nodiscard]] Result<std::filesystem::path> output_path_of(const Arguments& arguments);

// --max-file, or 5 GB.
[[nodiscard]] Result<std::uint64_t> max_file_bytes(const Arguments& arguments);

// A checkpoint, as in named_checkpoint, or a folder or file of safetensors from another program.
// kConfig if it is neither.
[[nodiscard]] Result<std::filesystem::path> named_weights(const std::filesystem::path& path);

struct OpenedWeights {
  std::filesystem::path path;
  CheckpointReader reader;
  Json config;  // the config.json beside the weights; null = none
  // The model of the weights, from their manifest, or from their config.json if Motley supports
  // that model family.
  std::optional<ModelConfig> model;

  // The checkpoint's folder or the file's parent, where related files are.
  [[nodiscard]] std::filesystem::path folder() const;
};

// Opens the weights. The files of a checkpoint that will be read are verified completely first.
// Files that this process creates afterwards from a checkpoint are as private as the checkpoint
// (keep_files_private).
[[nodiscard]] Result<OpenedWeights> open_weights(const std::filesystem::path& named,
                                                 bool with_optimizer,
                                                 WorkObserver& watch);

// The same for open weights. kCorrupt if a config.json cannot be read.
[[nodiscard]] Result<OpenedWeights> describe_weights(std::filesystem::path path,
                                                     CheckpointReader reader);

// The names of the model's parameters in its order; empty if the model cannot be described, for
// example because its package is not on this machine.
[[nodiscard]] std::vector<std::string> parameter_order(const std::optional<ModelConfig>& model);

// The parameters without optimizer state, in the model's order if it is known, otherwise in that of
// the files.
[[nodiscard]] std::vector<StoredTensor> parameters_of(const OpenedWeights& weights);

// The files of a folder that accompany its weights (huggingface_companions).
[[nodiscard]] std::vector<std::filesystem::path> companions_in(const std::filesystem::path& folder);

}  // namespace motley
