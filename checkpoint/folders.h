// The names in a run's checkpoints folder, and the moves that keep it whole after a crash at any
// point. Rules: docs/formats/checkpoint.md, "Commit".
//
//   step-000100             committed
//   .step-000100.000007-9f3c5a1b2c3d4e5f.partial    being written, by that launch
//   .step-000100.replaced   the committed one that a new one of the same step is about to replace
//   .step-000100.removed    on its way out; its contents mean nothing
//   .step-000100.000007-9f3c5a1b2c3d4e5f.restored   what that launch reads, of what it was begun
//   from
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
  // kPartial and kRestored: whose it is; "" = of a version of Motley that did not say.
  std::string launch;
};

// run_dir/checkpoints
[[nodiscard]] std::filesystem::path checkpoints_root(const std::filesystem::path& run_dir);

[[nodiscard]] std::string folder_name(const FolderName& name);

// Nothing when `text` is not exactly what folder_name writes.
[[nodiscard]] std::optional<FolderName> parse_folder_name(const std::string& text);

// The folders of checkpoints under `root`, in no order. An absent root holds none.
[[nodiscard]] std::vector<FolderName> folder_names(const std::filesystem::path& root);

// True when the folder holds a manifest: with a committed or replaced name, it is whole.
[[nodiscard]] bool has_manifest(const std::filesystem::path& folder);

// "model", 0, 3 -> "model-00001-of-00003.safetensors"
[[nodiscard]] std::string shard_file_name(const std::string& part, int rank, int rank_count);

// True for a file that holds parameters, or the optimizer's state, by its name.
[[nodiscard]] bool is_parameter_file(const std::string& name);
[[nodiscard]] bool is_optimizer_file(const std::string& name);

// True for a name that stays in its folder: not empty, no '/', no control character, not hidden.
[[nodiscard]] bool is_plain_name(const std::string& name);

// Removes the folder of that name under `root`, when there is one. It is renamed first, so that a
// crash half-way leaves nothing that could be taken for a checkpoint.
[[nodiscard]] Result<void> discard_folder(const std::filesystem::path& root,
                                          const FolderName& name);

}  // namespace motley
