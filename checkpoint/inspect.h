// The output of `motley ckpt list|show|verify`, as text and as JSON.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"

namespace motley {

// One line per checkpoint: step, samples, size, folder. A damaged manifest is marked as such.
[[nodiscard]] std::string format_checkpoint_list(const std::vector<CheckpointInfo>& checkpoints);

// [{"step", "folder", "tokens", "bytes"}, …]; {"step", "folder", "error"} for a damaged manifest.
[[nodiscard]] Json checkpoint_list_to_json(const std::vector<CheckpointInfo>& checkpoints);

// Step, model, tokens, parameters, optimizer, files with sizes, parameter hash. For a checkpoint
// distributed over several machines, also the machine of each file and the files in this folder.
[[nodiscard]] Result<std::string> format_checkpoint(const std::filesystem::path& folder);

// The same with every field of CheckpointState.
[[nodiscard]] Result<Json> checkpoint_to_json(const std::filesystem::path& folder);

// The result of a successful verify_checkpoint: files and bytes checked, and the parameter hash.
[[nodiscard]] Result<std::string> format_verification(const std::filesystem::path& folder,
                                                      WorkObserver* watch = nullptr);
[[nodiscard]] Result<Json> verification_to_json(const std::filesystem::path& folder,
                                                WorkObserver* watch = nullptr);

}  // namespace motley
