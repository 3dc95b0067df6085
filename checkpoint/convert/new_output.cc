#include "checkpoint/convert/new_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/system/files.h"
#include "checkpoint/folders.h"
#include "checkpoint/save/space.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

Error is_taken(const fs::path& destination) {
  return {ErrorCode::kConfig, fmt::format("{} already exists", destination.string()),
          "files are never overwritten", "choose another path, or move that one away"};
}

fs::path plain_path(const fs::path& destination) {
  fs::path plain = fs::absolute(destination).lexically_normal();
  return plain.has_filename() ? plain : plain.parent_path();  // it ended in '/'
}

Result<void> require_absent(const fs::path& destination) {
  std::error_code code;
  const fs::file_type type = fs::symlink_status(destination, code).type();
  if (type == fs::file_type::not_found) return {};
  if (type == fs::file_type::none) return file_error("access", destination, code.value());
  return is_taken(destination);
}

Result<void> require_free_space(const fs::path& folder, std::uint64_t needed_bytes) {
  const std::uint64_t free = free_bytes(folder);
  if (needed_bytes <= free) return {};
  return Error{ErrorCode::kCorrupt,
               fmt::format("too little space on the disk, {}", folder.string()),
               fmt::format("the output needs {} bytes, {} bytes are free, {} bytes are missing",
                           needed_bytes, free, needed_bytes - free),
               "free space on that disk, or choose a path on another one"};
}

// Takes the hidden folder for this process and empties it.
Result<int> take(const fs::path& partial) {
  if (::mkdir(partial.c_str(), 0777) != 0 && errno != EEXIST) {
    return file_error("create folder", partial, errno);
  }
  const int lock = ::open(partial.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (lock < 0) return file_error("open folder", partial, errno);
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(lock);
    return Error{ErrorCode::kConfig, fmt::format("{} is being written", partial.string()),
                 "another process writes the same output", "wait for it, or choose another path"};
  }
  std::error_code code;
  for (fs::directory_iterator it(partial, code); !code && it != fs::directory_iterator();
       it.increment(code)) {
    std::error_code removing;
    fs::remove_all(it->path(), removing);
    if (removing) code = removing;
    if (code) break;
  }
  if (!code) return lock;
  ::close(lock);
  return file_error("empty", partial, code.value());
}

// Fails with EEXIST rather than replace an existing file.
int give_file_name(const fs::path& from, const fs::path& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return 0;
  if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS) return errno;
  // A file system without hard links, as on most USB sticks.
  if (::access(to.c_str(), F_OK) == 0) return EEXIST;
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

}  // namespace

NewOutput::NewOutput(fs::path destination, Kind kind, fs::path partial, int lock)
    : destination_(std::move(destination)),
      kind_(kind),
      partial_(std::move(partial)),
      lock_(lock) {}

NewOutput::NewOutput(NewOutput&& other) noexcept
    : destination_(std::move(other.destination_)),
      kind_(other.kind_),
      partial_(std::exchange(other.partial_, {})),
      lock_(std::exchange(other.lock_, -1)) {}

NewOutput::~NewOutput() {
  if (!partial_.empty()) {
    std::error_code ignored;
    fs::remove_all(partial_, ignored);
  }
  if (lock_ >= 0) ::close(lock_);
}

Result<void> NewOutput::check_free(const fs::path& destination) {
  const fs::path plain = plain_path(destination);
  if (parse_folder_name(plain.parent_path().filename().string()) &&
      has_manifest(plain.parent_path())) {
    return Error{ErrorCode::kConfig, fmt::format("cannot write {}", plain.string()),
                 fmt::format("{} is a checkpoint, which may contain only its own files",
                             plain.parent_path().string()),
                 "choose another path"};
  }
  return require_absent(plain);
}

Result<NewOutput> NewOutput::begin(const fs::path& destination,
                                   Kind kind,
                                   std::uint64_t needed_bytes) {
  fs::path plain = plain_path(destination);
  MOTLEY_TRY(check_free(plain));
  MOTLEY_TRY(make_durable_folders(plain.parent_path()));
  MOTLEY_TRY(require_free_space(plain.parent_path(), needed_bytes));
  fs::path partial = plain.parent_path() / fmt::format(".{}.partial", plain.filename().string());
  MOTLEY_ASSIGN(const int lock, take(partial));
  return NewOutput(std::move(plain), kind, std::move(partial), lock);
}

fs::path NewOutput::place() const {
  return kind_ == Kind::kFolder ? partial_ : partial_ / destination_.filename();
}

// rename() of a folder replaces at most an empty folder.
Result<void> NewOutput::give_name() const {
  MOTLEY_TRY(sync_folder(partial_));
  MOTLEY_TRY(require_absent(destination_));
  const int failed = kind_ == Kind::kFile ? give_file_name(place(), destination_)
                     : ::rename(partial_.c_str(), destination_.c_str()) == 0 ? 0
                                                                             : errno;
  if (failed == EEXIST || failed == ENOTEMPTY || failed == ENOTDIR) return is_taken(destination_);
  if (failed != 0) return file_error("write", destination_, failed);
  return sync_folder(destination_.parent_path());
}

Result<void> NewOutput::commit() {
  MOTLEY_TRY(give_name());
  if (kind_ == Kind::kFolder) partial_.clear();
  return {};
}

}  // namespace motley
