#include "checkpoint/publish.h"

#include <fmt/format.h>

#include <cstdint>
#include <system_error>
#include <vector>

#include "base/system/files.h"
#include "checkpoint/folders.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

Result<void> rename_folder(const fs::path& from, const fs::path& to) {
  std::error_code code;
  fs::rename(from, to, code);
  if (code) return file_error("rename", from, code.value());
  return sync_folder(to.parent_path());
}

// Moves aside a path with a checkpoint's name that is none; its value is unknown.
Result<void> set_aside(const fs::path& found, const fs::path& aside) {
  std::error_code code;
  if (!fs::exists(fs::symlink_status(found, code))) return {};
  MOTLEY_TRY(make_folders(aside));
  return rename_folder(found, aside / found.filename());
}

}  // namespace

Result<void> remove_all_but(const fs::path& folder, const std::set<std::string>& names) {
  std::vector<fs::path> strays;
  std::error_code code;
  fs::directory_iterator it(folder, code);
  for (; !code && it != fs::directory_iterator(); it.increment(code)) {
    if (!names.contains(it->path().filename().string())) strays.push_back(it->path());
  }
  if (code) return file_error("list", folder, code.value());
  for (const fs::path& stray : strays) {
    fs::remove_all(stray, code);
    if (code) return file_error("remove", stray, code.value());
  }
  return {};
}

Result<void> publish_partial(const SaveLocation& location) {
  const fs::path root = checkpoints_root(location.run_dir);
  const std::int64_t step = location.step;
  const auto folder = [&](FolderKind kind) { return root / folder_name({step, kind, {}}); };
  const fs::path committed = folder(FolderKind::kCommitted);
  if (has_manifest(committed)) {
    MOTLEY_TRY(discard_folder(root, {step, FolderKind::kReplaced, {}}));
    MOTLEY_TRY(rename_folder(committed, folder(FolderKind::kReplaced)));
  } else {
    MOTLEY_TRY(set_aside(committed, root / fmt::format("not-a-checkpoint-{}", location.launch)));
  }
  MOTLEY_TRY(rename_folder(partial_folder(location), committed));
  MOTLEY_TRY(discard_folder(root, {step, FolderKind::kReplaced, {}}));
  // The root itself may be new.
  return sync_folder(location.run_dir);
}

}  // namespace motley
