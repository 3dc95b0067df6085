// The metadata of a checkpoint, the same on every machine that has a part of it: the manifest, the
// index, the model's config.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"

namespace motley {

struct CheckpointMetadata {
  Manifest manifest;
  std::map<std::string, std::string> files;  // text by file name, with the manifest

  [[nodiscard]] std::int64_t step() const { return manifest.state.step; }
};

// kCorrupt if a file is missing or contradicts the manifest.
[[nodiscard]] Result<CheckpointMetadata> read_metadata(const std::filesystem::path& folder);

[[nodiscard]] Json metadata_to_json(const CheckpointMetadata& step_metadata);
// With the same checks.
[[nodiscard]] Result<CheckpointMetadata> metadata_from_json(const Json& json,
                                                            const std::string& source);

// Whether the checkpoint's folder lacks files that its manifest names, which are on other machines.
// False if it has no readable manifest.
[[nodiscard]] bool is_partial_copy(const std::filesystem::path& folder);

// The manifest's files that contain tensors.
[[nodiscard]] std::vector<WrittenFile> tensor_files(const Manifest& manifest);

}  // namespace motley
