#include "data/files/text_files.h"

#include <algorithm>
#include <system_error>

#include "base/system/files.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLeftoverReason = "as leftovers of an operating system";

// Folders without sources: hidden ones, builds of CMake, and this program's runs, which are
// recognised by their launches (docs/formats/launches.md) wherever they are.
bool is_skipped_folder(const fs::path& path) {
  std::error_code ignored;
  const bool is_build =
      fs::exists(path / "CMakeCache.txt", ignored) && !fs::exists(path / "CMakeLists.txt", ignored);
  return path.filename().native().starts_with('.') || is_build ||
         fs::is_directory(path / "launches", ignored);
}

// Folders that are skipped by their name.
bool has_name_of_output(const fs::path& path) {
  const std::string name = path.filename().string();
  return name == "build" || name == "runs";
}

// Whether a folder of that name is certain to have no sources: it holds such folders.
bool holds_skipped_folders(const fs::path& folder) {
  std::error_code code;
  for (auto it = fs::directory_iterator(folder, code); !code && it != fs::directory_iterator();
       it.increment(code)) {
    std::error_code ignored;
    if (it->is_directory(ignored) && is_skipped_folder(it->path())) return true;
  }
  return false;
}

bool is_wanted_file(const fs::path& path, const std::vector<std::string>& suffixes) {
  const std::string name = path.filename().string();
  return suffixes.empty() ||
         std::any_of(suffixes.begin(), suffixes.end(),
                     [&](const std::string& suffix) { return name.ends_with(suffix); });
}

Error unreadable(const fs::path& path, const std::error_code& code) {
  Error error = file_error("read", path, code.value());
  error.code = ErrorCode::kData;
  return error;
}

// Whether to read the entry of a folder; an entry that is not read for a reason that may surprise
// is added to `left_out`.
bool is_read(const fs::path& path,
             const fs::file_status& status,
             const std::vector<std::string>& suffixes,
             LeftOut& left_out) {
  if (fs::is_directory(status)) {
    if (is_system_leftover(path)) {
      if (!path.filename().native().starts_with('.')) left_out.add(kLeftoverReason, path);
      return false;
    }
    if (is_skipped_folder(path)) return false;
    if (!has_name_of_output(path)) return true;
    if (!holds_skipped_folders(path)) left_out.add("by the name build or runs", path);
    return false;
  }
  if (!is_wanted_file(path, suffixes)) return false;
  if (fs::is_symlink(status)) left_out.add("as links", path);
  if (!fs::is_regular_file(status)) return false;
  if (!is_system_leftover(path)) return true;
  left_out.add(kLeftoverReason, path);
  return false;
}

}  // namespace

Result<TextFiles> find_text_files(const fs::path& root, const std::vector<std::string>& suffixes) {
  TextFiles found;
  std::error_code code;
  auto it = fs::recursive_directory_iterator(root, code);
  for (; !code && it != fs::recursive_directory_iterator(); it.increment(code)) {
    const fs::file_status status = it->symlink_status(code);
    if (code) break;
    const bool is_wanted = is_read(it->path(), status, suffixes, found.left_out);
    if (fs::is_directory(status) && !is_wanted) it.disable_recursion_pending();
    if (fs::is_regular_file(status) && is_wanted) found.files.push_back(it->path());
  }
  if (code) return unreadable(root, code);
  std::ranges::sort(found.files, {}, &fs::path::native);
  return found;
}

}  // namespace motley
