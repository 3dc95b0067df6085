// What the commands on checkpoints and weights read: the places that a person names, and what the
// weights there are of.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "job/config.h"
#include "tools/arguments.h"

namespace motley {

[[nodiscard]] OptionSpec output_option(const std::string& value, const std::string& help);
[[nodiscard]] OptionSpec max_file_option();

// Where --output is to be made. kConfig when something is there already.
[[nodiscard]] Result<std::filesystem::path> output_place(const Arguments& arguments);

// --max-file, or 5 GB.
[[nodiscard]] Result<std::uint64_t> max_file_bytes(const Arguments& arguments);

// A checkpoint, as named_checkpoint finds it, or a foreign folder or file of safetensors. kConfig
// when it is neither.
[[nodiscard]] Result<std::filesystem::path> named_weights(const std::filesystem::path& path);

struct OpenedWeights {
  std::filesystem::path path;
  CheckpointReader reader;
  Json config;  // config.json beside them; null = none
  // What they are of, as their manifest says, or their config.json where that is of a family that
  // Motley computes.
  std::optional<ModelConfig> model;

  // "a checkpoint's folder" or what holds the file, for what lies beside.
  [[nodiscard]] std::filesystem::path folder() const;
};

// Opens them; the files of a checkpoint that will be read are verified first, every byte, so what
// is read is what was saved. What this process makes from then on of a checkpoint is as private as
// that is (keep_files_private).
[[nodiscard]] Result<OpenedWeights> open_weights(const std::filesystem::path& named,
                                                 bool with_optimizer,
                                                 WorkWatch& watch);

// The same of weights that are open. kCorrupt for a config.json that cannot be read.
[[nodiscard]] Result<OpenedWeights> describe_weights(std::filesystem::path path,
                                                     CheckpointReader reader);

// The names of the model's parameters in its order; none when it cannot be described, as when its
// package is not on this machine.
[[nodiscard]] std::vector<std::string> parameter_order(const std::optional<ModelConfig>& model);

// The parameters, without the optimizer's state, in the model's order as far as that is known and
// in that of the files else.
[[nodiscard]] std::vector<StoredTensor> parameters_of(const OpenedWeights& weights);

// Those files of a folder that go where its weights go (huggingface_companions).
[[nodiscard]] std::vector<std::filesystem::path> companions_in(const std::filesystem::path& folder);

}  // namespace motley
