#include "cluster/join/machine/join_home.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/secret.h"
#include "base/system/files.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kNameDigits = 16;
constexpr std::uint64_t kKeyBytesMax = 4096;

bool is_absolute(const char* path) {
  return path != nullptr && fs::path(path).is_absolute();
}

Result<void> make_private_folder(const fs::path& folder) {
  MOTLEY_TRY(make_folders(folder));
  if (::chmod(folder.c_str(), S_IRWXU) != 0) return file_error("protect", folder, errno);
  return {};
}

}  // namespace

Result<JoinHome> JoinHome::make(const char* xdg_cache_home,
                                const char* home,
                                const std::string& head_fingerprint,
                                const std::string& machine) {
  fs::path cache;
  if (is_absolute(xdg_cache_home)) {
    cache = xdg_cache_home;
  } else if (is_absolute(home)) {
    cache = fs::path(home) / ".cache";
  } else {
    return Error{ErrorCode::kConfig, "this machine has no folder for files of the run",
                 "neither HOME nor XDG_CACHE_HOME is set", "set HOME"};
  }
  cache /= "motley";
  if (!machine.empty()) cache = cache / "machines" / machine;
  JoinHome made(cache / "join", head_fingerprint.substr(0, kNameDigits));
  MOTLEY_TRY(make_private_folder(made.objects()));
  MOTLEY_TRY(make_private_folder(made.session()));
  MOTLEY_TRY(made.lock_session());
  MOTLEY_TRY(make_private_folder(made.files()));
  MOTLEY_TRY(make_private_folder(made.runs()));
  return made;
}

// Two processes with one key would take the machine's place from each other again and again.
Result<void> JoinHome::lock_session() {
  const fs::path path = session() / "lock";
  lock_ =
      OwnedFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  if (!lock_.open()) return file_error("write", path, errno);
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return {};
  if (errno != EWOULDBLOCK) return file_error("lock", path, errno);
  return Error{ErrorCode::kUsage, "this machine has joined that run already",
               fmt::format("another motley join uses {}", session().string()),
               "end that one first, or set XDG_CACHE_HOME to another folder for this one"};
}

Result<JoinIdentity> JoinHome::identity() const {
  const fs::path path = session() / "key.pem";
  MOTLEY_ASSIGN(const bool exists, path_exists(path));
  if (exists) {
    MOTLEY_ASSIGN(std::string text, read_file(path, kKeyBytesMax));
    Result<JoinIdentity> stored = JoinIdentity::from_text(text);
    wipe(text);
    if (stored.ok()) return stored;
  }
  MOTLEY_ASSIGN(JoinIdentity identity, JoinIdentity::make());
  MOTLEY_ASSIGN(std::string text, identity.key_text());
  // The folder is private, so no other user can open the file before its mode is set.
  const Result<void> written = write_file_atomic(path, text);
  wipe(text);
  MOTLEY_TRY(written);
  if (::chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0) return file_error("protect", path, errno);
  return identity;
}

void JoinHome::end_session() const {
  std::error_code ignored;
  fs::remove_all(session(), ignored);
}

}  // namespace motley
