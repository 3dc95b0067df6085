// What `motley ckpt list|show|verify` prints, as text for people and as JSON for programs.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"

namespace motley {

// One line a checkpoint: step, samples, size, folder. A damaged manifest is shown as such.
[[nodiscard]] std::string format_checkpoint_list(const std::vector<CheckpointInfo>& checkpoints);

// [{"step", "folder", "tokens", "bytes"}, …]; {"step", "folder", "error"} for a damaged manifest.
[[nodiscard]] Json checkpoint_list_to_json(const std::vector<CheckpointInfo>& checkpoints);

// Step, model, tokens, parameters, optimizer, files with sizes, parameter hash. Of a checkpoint
// that lies in the folders of several machines also who wrote what, and what of it lies here.
[[nodiscard]] Result<std::string> format_checkpoint(const std::filesystem::path& folder);

// The same with every field of CheckpointState.
[[nodiscard]] Result<Json> checkpoint_to_json(const std::filesystem::path& folder);

// verify_checkpoint's good news: files and bytes checked, and the parameter hash.
[[nodiscard]] Result<std::string> format_verification(const std::filesystem::path& folder,
                                                      WorkWatch* watch = nullptr);
[[nodiscard]] Result<Json> verification_to_json(const std::filesystem::path& folder,
                                                WorkWatch* watch = nullptr);

}  // namespace motley
