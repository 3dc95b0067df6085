#include "profiling/cache/stored_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/system/files.h"

namespace motley {
namespace {

void prune(const std::filesystem::path& folder,
           const std::filesystem::path& extension,
           std::size_t files_max) {
  std::vector<std::pair<std::filesystem::file_time_type, std::filesystem::path>> files;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(folder, code)) {
    std::error_code unknown;
    const auto written = entry.last_write_time(unknown);
    if (!unknown && entry.path().extension() == extension) {
      files.emplace_back(written, entry.path());
    }
  }
  if (files.size() <= files_max) return;
  std::ranges::sort(files);
  files.resize(files.size() - files_max);
  for (const auto& [written, path] : files) std::filesystem::remove(path, code);
}

}  // namespace

Result<void> store_file(const std::filesystem::path& path,
                        const std::string& text,
                        std::size_t files_max) {
  const std::filesystem::path folder = path.parent_path();
  MOTLEY_TRY(make_folders(folder));
  // A temporary name unique to this process: two may write the same file at the same time.
  const std::filesystem::path own =
      folder / fmt::format(".{}-{:x}{}", ::getpid(), SteadyClock::now().time_since_epoch().count(),
                           path.extension().string());
  MOTLEY_TRY(write_file_atomic(own, text));
  std::error_code code;
  std::filesystem::rename(own, path, code);
  if (code) {
    std::error_code ignored;
    std::filesystem::remove(own, ignored);
    return file_error("write", path, code.value());
  }
  prune(folder, path.extension(), files_max);
  return sync_folder(folder);
}

}  // namespace motley
