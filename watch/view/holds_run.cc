#include "watch/view/holds_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/json.h"
#include "base/system/files.h"
#include "checkpoint/lock/launch_record.h"

namespace motley {
namespace {

Result<bool> holds_run(const RunFolder& folder) {
  for (const auto& path : {folder.config_path(), folder.plan_path(), folder.metrics_path()}) {
    MOTLEY_ASSIGN(const bool exists, path_exists(path));
    if (exists) return true;
  }
  return last_launch(folder.dir()) > 0;
}

// The hint: the runs inside the folder, as "name one of the runs in it: a, b", or how to name a
// run.
std::string remedy_for(const std::filesystem::path& folder) {
  constexpr std::size_t kLookedAtMax = 1000;
  constexpr std::size_t kNamedMax = 5;
  std::vector<std::string> runs;
  std::error_code code;
  std::size_t looked_at = 0;
  for (std::filesystem::directory_iterator entry(folder, code), end;
       !code && entry != end && looked_at < kLookedAtMax; entry.increment(code), ++looked_at) {
    std::error_code ignored;
    if (!entry->is_directory(ignored)) continue;
    const auto holds = holds_run(RunFolder(entry->path()));
    if (holds.ok() && *holds) runs.push_back(readable_text(entry->path().string()));
  }
  if (runs.empty()) return "give the folder of a run, as in --run or run.dir";
  std::ranges::sort(runs);
  const std::string more =
      runs.size() > kNamedMax ? fmt::format(", … ({} in all)", runs.size()) : "";
  runs.resize(std::min(runs.size(), kNamedMax));
  return fmt::format("give one of the runs in it: {}{}", fmt::join(runs, ", "), more);
}

}  // namespace

Result<void> check_holds_run(const RunFolder& folder) {
  const std::filesystem::path& dir = folder.dir();
  MOTLEY_ASSIGN(const bool exists, path_exists(dir));
  std::string cause = "no such folder";
  if (exists) {
    std::error_code code;
    const bool is_folder = std::filesystem::is_directory(dir, code);
    if (is_folder) {
      MOTLEY_ASSIGN(const bool holds, holds_run(folder));
      if (holds) return {};
    }
    cause = is_folder ? "the folder has no files of a run" : "it is a file, not a folder";
  }
  return Error{ErrorCode::kConfig, fmt::format("no run in {}", dir.string()), cause,
               remedy_for(dir)};
}

std::string readable_text(const std::string& text) {
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace motley
