// What of a checkpoint holds no tensors, and is the same on every machine that has a part of it:
// the manifest, the index, the model's config.json.
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
  std::map<std::string, std::string> files;  // all of them, the manifest's too, by name

  [[nodiscard]] std::int64_t step() const { return manifest.state.step; }
};

// kCorrupt when one is missing, or not as the manifest says.
[[nodiscard]] Result<CheckpointMetadata> read_texts(const std::filesystem::path& folder);

[[nodiscard]] Json texts_to_json(const CheckpointMetadata& texts);
// The same checks.
[[nodiscard]] Result<CheckpointMetadata> texts_from_json(const Json& json,
                                                         const std::string& source);

// Whether the folder, a checkpoint's, lacks files that its manifest names: they lie on other
// machines. False where it has no manifest that can be read.
[[nodiscard]] bool is_part(const std::filesystem::path& folder);

// Of the manifest's files those that hold tensors.
[[nodiscard]] std::vector<WrittenFile> tensor_files(const Manifest& manifest);

}  // namespace motley
