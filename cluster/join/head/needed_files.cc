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
#include "data/tokens/token_files.h"
#include "models/package/sha256.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFilesMax = 1'000'000;
constexpr std::size_t kHashedAtOnceBytes = std::size_t{1} << 20;

// The files of a folder, without those below it, that `fits` accepts.
template <class Fits>
void add_files_of(const fs::path& folder, Fits fits, std::set<fs::path>& files) {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    if (entry.is_regular_file(failed) && fits(entry.path().filename())) files.insert(entry.path());
  }
}

void add_with_companions(const fs::path& file, std::set<fs::path>& files) {
  const fs::path stem = file.stem();
  const bool is_index = file.filename().string().ends_with(".index.json");
  files.insert(file);
  add_files_of(
      file.parent_path(),
      [&](const fs::path& name) {
        return name.stem() == stem || name == "meta.pkl" ||
               (is_index && name.extension() == ".safetensors");
      },
      files);
}

Result<void> add_files(const std::string& path, std::set<fs::path>& files) {
  const std::size_t before = files.size();
  std::error_code failed;
  if (fs::is_directory(path, failed)) {
    for (const auto& entry : fs::recursive_directory_iterator(path, failed)) {
      if (entry.is_regular_file(failed)) files.insert(entry.path());
      if (files.size() > kFilesMax) break;
    }
  } else if (fs::is_regular_file(path, failed)) {
    add_with_companions(path, files);
  } else {
    // A pattern of token files, or the name of one without its suffix.
    MOTLEY_ASSIGN(const TokenFiles found, find_token_files(path));
    for (const auto& some : {found.files, found.held_out}) {
      for (const fs::path& file : some) {
        if (fs::is_regular_file(file, failed)) add_with_companions(file, files);
      }
    }
  }
  if (files.size() > kFilesMax) {
    return Error{ErrorCode::kConfig, fmt::format("{} has too many files to send", path),
                 fmt::format("at most {} files are sent to joined machines", kFilesMax),
                 "pack the data into one file, or start those machines through ssh"};
  }
  if (files.size() > before) return {};
  return Error{ErrorCode::kConfig, fmt::format("{} does not exist here", path),
               "it is sent from here to the machines that have joined", "correct the path"};
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

Result<std::vector<OfferedFile>> needed_files(
    const std::vector<std::string>& paths,
    const std::function<void(const std::string& path)>& progress) {
  std::set<fs::path> files;
  for (const std::string& path : paths) MOTLEY_TRY(add_files(path, files));
  std::vector<OfferedFile> offered;
  for (const fs::path& path : files) {
    progress(path.string());
    MOTLEY_ASSIGN(OfferedFile file, hashed_file(path));
    offered.push_back(std::move(file));
  }
  return offered;
}

}  // namespace motley
