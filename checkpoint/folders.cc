#include "checkpoint/folders.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/check.h"
#include "base/system/files.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/fencing_token.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";

std::string_view suffix(FolderKind kind) {
  switch (kind) {
    case FolderKind::kCommitted:
      return "";
    case FolderKind::kPartial:
      return ".partial";
    case FolderKind::kReplaced:
      return ".replaced";
    case FolderKind::kRemoved:
      return ".removed";
    case FolderKind::kRestored:
      return ".restored";
  }
  MOTLEY_CHECK(false, "kind {}", static_cast<int>(kind));
}

// A later checkpoint that cannot be read, so that its files are unknown. The run was resumed from
// an earlier one; the tensors may be intact, and a restored manifest makes it a checkpoint again.
bool may_be_mended(const fs::path& root, const FolderName& name, std::int64_t last_saved) {
  if (name.step <= last_saved) return false;
  const Result<Manifest> manifest = read_manifest(root / folder_name(name));
  return !manifest.ok() || manifest->state.step != name.step;
}

bool has_launch(FolderKind kind) {
  return kind == FolderKind::kPartial || kind == FolderKind::kRestored;
}

}  // namespace

fs::path checkpoints_root(const fs::path& run_dir) {
  return run_dir / "checkpoints";
}

std::string folder_name(const FolderName& name) {
  return fmt::format("{}{}{:06}{}{}{}", name.kind == FolderKind::kCommitted ? "" : ".", kPrefix,
                     name.step, name.launch.empty() ? "" : ".", name.launch, suffix(name.kind));
}

std::optional<FolderName> parse_folder_name(const std::string& text) {
  for (const auto kind : {FolderKind::kCommitted, FolderKind::kPartial, FolderKind::kReplaced,
                          FolderKind::kRemoved, FolderKind::kRestored}) {
    std::string_view rest = text;
    if (kind != FolderKind::kCommitted && rest.starts_with('.')) rest.remove_prefix(1);
    if (!rest.starts_with(kPrefix) || !rest.ends_with(suffix(kind))) continue;
    rest.remove_prefix(kPrefix.size());
    rest.remove_suffix(suffix(kind).size());
    FolderName name{.kind = kind};
    const std::size_t dot = rest.find('.');
    if (has_launch(kind) && dot != rest.npos) {
      name.launch = rest.substr(dot + 1);
      if (!parse_launch(name.launch)) continue;
    }
    std::from_chars(rest.data(), rest.data() + std::min(dot, rest.size()), name.step);
    if (name.step >= 0 && folder_name(name) == text) return name;
  }
  return {};
}

std::vector<FolderName> folder_names(const fs::path& root) {
  std::vector<FolderName> names;
  std::error_code code;
  fs::directory_iterator it(root, code);
  for (; !code && it != fs::directory_iterator(); it.increment(code)) {
    if (const auto name = parse_folder_name(it->path().filename().string())) names.push_back(*name);
  }
  return names;
}

bool has_manifest(const fs::path& folder) {
  std::error_code code;
  return fs::symlink_status(folder / kManifestName, code).type() == fs::file_type::regular;
}

std::string shard_file_name(const std::string& part, int rank, int rank_count) {
  return fmt::format("{}-{:05}-of-{:05}.safetensors", part, rank + 1, rank_count);
}

bool is_parameter_file(const std::string& name) {
  return name.starts_with("model-") && name.ends_with(".safetensors");
}

bool is_optimizer_file(const std::string& name) {
  return name.starts_with("optimizer-") && name.ends_with(".safetensors");
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name.front() != '.' && std::all_of(name.begin(), name.end(), [](char c) {
    return c != '/' && static_cast<unsigned char>(c) >= 0x20 && c != 0x7F;
  });
}

Result<void> discard_folder(const fs::path& root, const FolderName& name) {
  const fs::path doomed = root / folder_name({name.step, FolderKind::kRemoved, {}});
  const fs::path folder = root / folder_name(name);
  std::error_code code;
  fs::remove_all(doomed, code);
  if (code) return file_error("remove", doomed, code.value());
  if (name.kind == FolderKind::kRemoved) return {};
  fs::rename(folder, doomed, code);
  if (code == std::errc::no_such_file_or_directory) return {};
  if (code) return file_error("rename", folder, code.value());
  // The new name must be on the disk before the contents are removed.
  MOTLEY_TRY(sync_folder(root));
  fs::remove_all(doomed, code);
  if (code) return file_error("remove", doomed, code.value());
  return {};
}

fs::path checkpoint_folder(const fs::path& run_dir, std::int64_t step) {
  return checkpoints_root(run_dir) / folder_name({step, FolderKind::kCommitted, {}});
}

fs::path partial_folder(const SaveLocation& location) {
  return checkpoints_root(location.run_dir) /
         folder_name({location.step, FolderKind::kPartial, location.launch});
}

Result<void> discard_partial(const SaveLocation& location) {
  return discard_folder(checkpoints_root(location.run_dir),
                        {location.step, FolderKind::kPartial, location.launch});
}

std::vector<CheckpointInfo> list_checkpoints(const fs::path& run_dir) {
  const fs::path root = checkpoints_root(run_dir);
  std::map<std::int64_t, fs::path> by_step;
  for (const FolderName& name : folder_names(root)) {
    const fs::path folder = root / folder_name(name);
    if (!has_manifest(folder)) continue;
    // A replaced checkpoint counts for its step only until its successor has its name.
    if (name.kind == FolderKind::kCommitted) by_step[name.step] = folder;
    if (name.kind == FolderKind::kReplaced) by_step.emplace(name.step, folder);
  }
  std::vector<CheckpointInfo> found;
  found.reserve(by_step.size());
  for (const auto& [step, folder] : by_step) found.push_back({step, folder});
  return found;
}

std::optional<BestCheckpoint> best_checkpoint(const std::vector<CheckpointInfo>& checkpoints) {
  for (auto each = checkpoints.rbegin(); each != checkpoints.rend(); ++each) {
    const Result<Manifest> manifest = read_manifest(each->folder);
    if (!manifest.ok() || !manifest->state.evaluations) continue;
    const auto& best = manifest->state.evaluations->best;
    if (!best) continue;
    const auto found = std::ranges::find(checkpoints, best->step, &CheckpointInfo::step);
    if (found != checkpoints.end()) return BestCheckpoint{*found, *best};
  }
  return std::nullopt;
}

Result<void> require_all_count(const fs::path& run_dir) {
  const fs::path root = checkpoints_root(run_dir);
  std::error_code code;
  if (fs::symlink_status(root, code).type() == fs::file_type::not_found) return {};
  const fs::directory_iterator readable(root, code);
  if (code) return file_error("read folder", root, code.value());
  for (const FolderName& name : folder_names(root)) {
    const fs::path folder = root / folder_name(name);
    if (name.kind != FolderKind::kCommitted || has_manifest(folder)) continue;
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} has the name of a checkpoint, but is none", folder.string()),
                 fmt::format("its {} is missing or not a regular file", kManifestName),
                 "restore that file, or move the folder away"};
  }
  return {};
}

std::vector<CheckpointInfo> dropped_checkpoints(const std::vector<CheckpointInfo>& checkpoints,
                                                const RetentionPolicy& rule) {
  MOTLEY_CHECK(rule.newest >= 0 && rule.every >= 0, "{} newest, every {}", rule.newest, rule.every);
  const std::size_t kept =
      rule.newest == 0 ? checkpoints.size() : static_cast<std::size_t>(rule.newest);
  std::vector<CheckpointInfo> dropped;
  for (std::size_t i = 0; i + kept < checkpoints.size(); ++i) {
    const std::int64_t step = checkpoints[i].step;
    const bool is_kept = (rule.every > 0 && step % rule.every == 0) || rule.always.contains(step);
    if (!is_kept) dropped.push_back(checkpoints[i]);
  }
  return dropped;
}

Result<void> prune_checkpoints(const fs::path& run_dir,
                               const RetentionPolicy& rule,
                               const std::string& launch) {
  return prune_to(run_dir, retained_steps(list_checkpoints(run_dir), rule), launch);
}

std::set<std::int64_t> retained_steps(const std::vector<CheckpointInfo>& checkpoints,
                                      const RetentionPolicy& rule) {
  std::set<std::int64_t> kept;
  for (const CheckpointInfo& checkpoint : checkpoints) kept.insert(checkpoint.step);
  for (const CheckpointInfo& dropped : dropped_checkpoints(checkpoints, rule)) {
    kept.erase(dropped.step);
  }
  return kept;
}

Result<void> prune_to(const fs::path& run_dir,
                      const std::set<std::int64_t>& kept,
                      const std::string& launch,
                      std::optional<std::int64_t> done) {
  const std::vector<CheckpointInfo> checkpoints = list_checkpoints(run_dir);
  const std::int64_t last = done.value_or(kept.empty() ? -1 : *kept.rbegin());
  const fs::path root = checkpoints_root(run_dir);
  for (const FolderName& name : folder_names(root)) {
    const bool listed = std::ranges::find(checkpoints, root / folder_name(name),
                                          &CheckpointInfo::folder) != checkpoints.end();
    // Of this launch: folders that may still be written to or read.
    const bool is_written =
        name.kind == FolderKind::kPartial && name.launch == launch && name.step > last;
    // Committed elsewhere, and not yet renamed here.
    const bool is_only_place =
        name.kind == FolderKind::kPartial && kept.contains(name.step) &&
        std::ranges::find(checkpoints, name.step, &CheckpointInfo::step) == checkpoints.end();
    const bool is_read =
        name.kind == FolderKind::kRestored && name.launch == launch && name.step >= last;
    const bool in_use = listed ? kept.contains(name.step) || may_be_mended(root, name, last)
                               : is_written || is_read || is_only_place;
    // A folder with a checkpoint's name and no manifest was not created by Motley and is retained.
    const bool foreign = name.kind == FolderKind::kCommitted && !listed;
    if (!in_use && !foreign) MOTLEY_TRY(discard_folder(root, name));
  }
  return {};
}

}  // namespace motley
