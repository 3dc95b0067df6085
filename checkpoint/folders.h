// The names in a run's checkpoints folder, and the renames that keep it consistent after a crash at
// any point. Rules: docs/formats/checkpoint.md, "Commit".
//
//   step-000100             committed
//   .step-000100.000007-9f3c5a1b2c3d4e5f.partial    being written, by that launch
//   .step-000100.replaced   the committed one that a new one of the same step is about to replace
//   .step-000100.removed    being removed; its contents are invalid
//   .step-000100.000007-9f3c5a1b2c3d4e5f.restored   view that this launch resumes from
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace motley {

inline constexpr const char* kManifestName = "manifest.json";
inline constexpr const char* kIndexName = "model.safetensors.index.json";
inline constexpr const char* kModelConfigName = "config.json";

enum class FolderKind { kCommitted, kPartial, kReplaced, kRemoved, kRestored };

struct FolderName {
  std::int64_t step = 0;
  FolderKind kind = FolderKind::kCommitted;
  // kPartial and kRestored: the launch; "" = written by a version of Motley without it.
  std::string launch;
};

// run_dir/checkpoints
[[nodiscard]] std::filesystem::path checkpoints_root(const std::filesystem::path& run_dir);

[[nodiscard]] std::string folder_name(const FolderName& name);

// nullopt if `text` is not exactly what folder_name returns.
[[nodiscard]] std::optional<FolderName> parse_folder_name(const std::string& text);

// The checkpoint folders under `root`, unordered. Empty for an absent root.
[[nodiscard]] std::vector<FolderName> folder_names(const std::filesystem::path& root);

// True if the folder has a manifest: with a committed or replaced name, it is complete.
[[nodiscard]] bool has_manifest(const std::filesystem::path& folder);

// "model", 0, 3 -> "model-00001-of-00003.safetensors"
[[nodiscard]] std::string shard_file_name(const std::string& part, int rank, int rank_count);

// True for a file of parameters, or of optimizer state, by its name.
[[nodiscard]] bool is_parameter_file(const std::string& name);
[[nodiscard]] bool is_optimizer_file(const std::string& name);

// True for a name without a path: not empty, no '/', no control character, not hidden.
[[nodiscard]] bool is_plain_name(const std::string& name);

// Removes the folder of that name under `root` if it exists. It is renamed first, so that a crash
// half-way leaves nothing that looks like a checkpoint.
[[nodiscard]] Result<void> discard_folder(const std::filesystem::path& root,
                                          const FolderName& name);

}  // namespace motley
