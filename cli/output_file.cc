#include "cli/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "base/system/files.h"
#include "base/system/owned_fd.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

// The destination of an output.
struct OutputPathOf {
  fs::path file;
  fs::path temporary;       // in the same folder, with a unique name
  bool is_replaced = true;  // false: not a regular file, written in place
};

Result<OutputPathOf> place_of(const fs::path& path) {
  std::error_code code;
  const fs::file_type type = fs::status(path, code).type();
  if (type == fs::file_type::directory) return file_error("write", path, EISDIR);
  if (type == fs::file_type::none) return file_error("write", path, code.value());
  OutputPathOf place{path, {}, type == fs::file_type::regular || type == fs::file_type::not_found};
  if (type == fs::file_type::regular && fs::is_symlink(path, code)) {
    place.file = fs::canonical(path, code);
    if (code) return file_error("write", path, code.value());
  }
  place.temporary = place.file.parent_path() /
                    fmt::format(".{}.motley-{}", place.file.filename().string(), ::getpid());
  return place;
}

Result<void> write_through(const fs::path& path, std::string_view text) {
  const OwnedFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.open()) return file_error("write", path, errno);
  while (!text.empty()) {
    const ssize_t written = ::write(fd.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return file_error("write", path, errno);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace

Result<void> write_output(const fs::path& path, std::string_view text) {
  MOTLEY_ASSIGN(const OutputPathOf place, place_of(path));
  if (!place.is_replaced) return write_through(path, text);
  return replace_file(place.file, place.temporary, text);
}

Result<void> check_output(const fs::path& path) {
  MOTLEY_ASSIGN(const OutputPathOf place, place_of(path));
  if (!place.is_replaced) return {};
  const auto file = OutputFile::create(place.temporary);
  ::unlink(place.temporary.c_str());
  if (file.ok()) return {};
  Error error = file.error();
  error.what = fmt::format("cannot write {}", path.string());  // not the temporary path
  return error;
}

Result<void> write_new_output(const fs::path& path, std::string_view text) {
  std::FILE* file = std::fopen(path.c_str(), "wxe");
  if (file == nullptr) return file_error("write", path, errno);
  const bool is_written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool is_closed = std::fclose(file) == 0;
  if (!is_written || !is_closed) return file_error("write", path, errno);
  MOTLEY_ASSIGN(const std::string back, read_file(path, text.size() + 1));
  if (back == text) return {};
  return Error{ErrorCode::kCorrupt,
               fmt::format("{} differs from the written content", path.string()), "",
               "check the disk, and start again"};
}

Result<void> check_new_output(const fs::path& path) {
  MOTLEY_ASSIGN(const bool exists, path_exists(path));
  if (exists) {
    return Error{ErrorCode::kConfig, fmt::format("{} already exists", path.string()),
                 "this command never overwrites a file", "remove it, or give another path"};
  }
  return check_can_write(path);
}

}  // namespace motley
