#include "checkpoint/replication/store_location.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "base/system/files.h"
#include "base/system/privacy.h"
#include "checkpoint/fencing_token.h"
#include "checkpoint/replication/folder_id.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIdName = "store.json";
constexpr std::string_view kHome = "~/";

Result<fs::path> with_home(const std::string& dir) {
  if (!dir.starts_with(kHome)) return fs::path(dir);
  const char* home = std::getenv("HOME");
  if (home == nullptr || home[0] != '/') {
    return Error{ErrorCode::kConfig, fmt::format("no run folder on this machine, {}", dir),
                 "its user has no home folder",
                 "set runs_dir = \"/…\" in the machine's entry of the cluster file"};
  }
  return fs::path(home) / dir.substr(kHome.size());
}

bool is_launchers(const std::string& dir, const std::string& launch) {
  return !dir.empty() && require_launch(dir, launch).ok();
}

Result<std::int64_t> changed_ns(const fs::path& path) {
  struct stat status {};

  if (::stat(path.c_str(), &status) != 0) return file_error("access", path, errno);
  constexpr std::int64_t kSecond_ns = 1'000'000'000;
  return status.st_ctim.tv_sec * kSecond_ns + status.st_ctim.tv_nsec;
}

// Machines that see one folder agree on its id, whichever creates it: the first file wins.
Result<void> make_id(const fs::path& path) {
  MOTLEY_ASSIGN(const std::string id, make_folder_id());
  const fs::path temporary = path.parent_path() / fmt::format(".store-{}", id);
  MOTLEY_TRY(write_file_atomic(temporary, folder_id_text("motley.store", id)));
  std::error_code code;
  fs::create_hard_link(temporary, path, code);
  const bool exists = code == std::errc::file_exists;
  // Without hard links, two machines that start at once may read different ids.
  if (code && !exists) fs::rename(temporary, path, code);
  std::error_code ignored;
  fs::remove(temporary, ignored);
  if (code && !exists) return file_error("create", path, code.value());
  return sync_folder(path.parent_path());
}

}  // namespace

Result<StoreLocation> find_store(const LauncherFolder& launcher, IfAbsent if_absent) {
  if (is_launchers(launcher.dir, launcher.launch)) return StoreLocation{.dir = launcher.dir};
  MOTLEY_ASSIGN(const fs::path own, with_home(launcher.own_dir));
  if (is_launchers(own.string(), launcher.launch)) return StoreLocation{.dir = own};
  StoreLocation location{.dir = own, .is_shared = false};
  const fs::path id_path = own / kIdName;
  MOTLEY_ASSIGN(const bool has_id, path_exists(id_path));
  if (!has_id && if_absent == IfAbsent::kLeave) return location;
  if (!has_id) {
    MOTLEY_TRY(make_durable_folders(own.parent_path()));
    keep_files_private(own);
    MOTLEY_TRY(make_durable_folders(own));
    MOTLEY_TRY(make_id(id_path));
  }
  MOTLEY_ASSIGN(location.id, read_folder_id(id_path));
  MOTLEY_ASSIGN(location.id_changed_ns, changed_ns(id_path));
  return location;
}

}  // namespace motley
