#include "cluster/join/head/needed_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <set>
#include <span>
#include <utility>

#include "base/system/files.h"
#include "data/data_files.h"
#include "models/package/sha256.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFilesMax = 1'000'000;
constexpr std::size_t kHashedAtOnceBytes = std::size_t{1} << 20;

// Of a package or of weights. An index of safetensors comes with the files that it names.
Result<void> add_files(const std::string& path, std::set<fs::path>& files) {
  std::error_code failed;
  if (fs::is_directory(path, failed)) {
    for (const auto& entry : fs::recursive_directory_iterator(path, failed)) {
      if (entry.is_regular_file(failed)) files.insert(entry.path());
    }
    return {};
  }
  if (!fs::is_regular_file(path, failed)) {
    return Error{ErrorCode::kConfig, fmt::format("{} does not exist here", path),
                 "it is sent from here to the machines that have joined", "correct the path"};
  }
  files.insert(path);
  if (!path.ends_with(".index.json")) return {};
  for (const auto& entry : fs::directory_iterator(fs::path(path).parent_path(), failed)) {
    if (entry.path().extension() == ".safetensors" && entry.is_regular_file(failed)) {
      files.insert(entry.path());
    }
  }
  return {};
}

Result<std::set<fs::path>> files_of_run(const Config& config) {
  MOTLEY_ASSIGN(std::set<fs::path> files, files_of_data(config.data));
  for (const std::string& path : {config.model.path, config.model.init_from}) {
    if (!path.empty()) MOTLEY_TRY(add_files(path, files));
  }
  if (files.size() > kFilesMax) {
    return Error{ErrorCode::kConfig, fmt::format("{} files are too many to send", files.size()),
                 fmt::format("at most {} files are sent to joined machines", kFilesMax),
                 "pack the data into one file, or start those machines through ssh"};
  }
  return files;
}

Result<OfferedFile> hashed_file(const fs::path& path) {
  const std::string text = path.string();
  if (text.size() > kJoinPathBytesMax) {
    return Error{ErrorCode::kConfig, fmt::format("{} cannot be sent", excerpt(text)),
                 fmt::format("its path has more than {} bytes", kJoinPathBytesMax),
                 "move it to a folder with a shorter path"};
  }
  MOTLEY_ASSIGN(const OwnedFd fd, open_file(path, O_RDONLY));
  MOTLEY_ASSIGN(Sha256 hash, Sha256::make());
  OfferedFile file{text, 0, ""};
  std::vector<std::byte> buffer(kHashedAtOnceBytes);
  for (;;) {
    const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error("read", path, errno);
    if (count == 0) break;
    hash.add(std::span(buffer).first(static_cast<std::size_t>(count)));
    file.bytes += static_cast<std::uint64_t>(count);
  }
  file.sha256 = hash.hex();
  return file;
}

}  // namespace

Result<void> check_files(const Config& config) {
  MOTLEY_TRY(files_of_run(config));
  return {};
}

Result<std::vector<OfferedFile>> needed_files(
    const Config& config, const std::function<void(const std::string& path)>& progress) {
  MOTLEY_ASSIGN(const std::set<fs::path> files, files_of_run(config));
  std::vector<OfferedFile> offered;
  for (const fs::path& path : files) {
    progress(path.string());
    MOTLEY_ASSIGN(OfferedFile file, hashed_file(path));
    offered.push_back(std::move(file));
  }
  return offered;
}

}  // namespace motley
