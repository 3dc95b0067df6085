#include "checkpoint/replication/intact_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <vector>

#include "base/hash.h"
#include "checkpoint/folders.h"
#include "checkpoint/input_file.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

bool may_hold(FolderKind kind) {
  return kind == FolderKind::kCommitted || kind == FolderKind::kReplaced ||
         kind == FolderKind::kPartial;
}

// In the order of the search for the step's files.
std::vector<fs::path> folders_of(const fs::path& run_dir, std::int64_t step) {
  const fs::path root = checkpoints_root(run_dir);
  std::vector<FolderName> names = folder_names(root);
  std::erase_if(names, [&](const FolderName& folder) {
    return folder.step != step || !may_hold(folder.kind);
  });
  std::ranges::sort(names, {}, &FolderName::kind);
  std::vector<fs::path> folders;
  for (const FolderName& name : names) folders.push_back(root / folder_name(name));
  return folders;
}

}  // namespace

Result<bool> is_intact(const fs::path& path,
                       const WrittenFile& file,
                       ProgressCounter* work,
                       const std::stop_token& stop) {
  const Result<InputFile> opened = InputFile::open(path, work);
  if (!opened.ok() || opened->bytes() != file.bytes) return false;
  Hasher128 hasher;
  std::vector<std::byte> block(std::min<std::uint64_t>(file.bytes, 1 << 20));
  for (std::uint64_t done = 0; done < file.bytes;) {
    if (stop.stop_requested()) {
      return Error{ErrorCode::kInterrupted, fmt::format("stopped while reading {}", path.string()),
                   "it was asked to stop", ""};
    }
    const auto part =
        std::span(block).first(std::min<std::uint64_t>(block.size(), file.bytes - done));
    if (!opened->read_at(done, part).ok()) return false;
    hasher.add(part);
    done += part.size();
  }
  return hasher.hex() == file.hash;
}

std::uint64_t bytes_to_read(const fs::path& run_dir,
                            std::int64_t step,
                            const std::vector<WrittenFile>& files) {
  std::uint64_t bytes = 0;
  const std::vector<fs::path> folders = folders_of(run_dir, step);
  for (const WrittenFile& file : files) {
    if (!is_plain_name(file.name)) continue;
    // A file of another size is not read.
    const bool is_present = std::ranges::any_of(folders, [&](const fs::path& folder) {
      std::error_code code;
      return fs::file_size(folder / file.name, code) == file.bytes && !code;
    });
    if (is_present) bytes += file.bytes;
  }
  return bytes;
}

Result<FileSearch> find_file(const fs::path& run_dir,
                             std::int64_t step,
                             const WrittenFile& file,
                             ProgressCounter* work,
                             const std::stop_token& stop) {
  FileSearch found;
  if (!is_plain_name(file.name)) return found;
  for (const fs::path& folder : folders_of(run_dir, step)) {
    const fs::path path = folder / file.name;
    std::error_code code;
    if (fs::symlink_status(path, code).type() == fs::file_type::not_found) continue;
    MOTLEY_ASSIGN(const bool intact, is_intact(path, file, work, stop));
    if (intact) {
      found.intact = path;
      return found;
    }
    if (!found.damaged) found.damaged = path;
  }
  return found;
}

}  // namespace motley
