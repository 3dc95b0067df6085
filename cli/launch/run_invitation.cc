#include "cli/launch/run_invitation.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/secret.h"
#include "base/system/files.h"

namespace motley {
namespace {

constexpr std::size_t kTextBytesMax = 8192;

std::filesystem::path invitation_path(const std::filesystem::path& run_dir) {
  return run_dir / "invitation";
}

}  // namespace

Result<RunInvitation> RunInvitation::write(const std::filesystem::path& run_dir,
                                           const InvitationText& text) {
  const std::filesystem::path path = invitation_path(run_dir);
  const std::filesystem::path fresh = path.string() + "." + text.mark;
  std::string bytes = text.mark + "\n" + text.ticket + "\n";
  const OwnedFd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                            S_IRUSR | S_IWUSR));
  const bool is_written =
      file.open() &&
      ::write(file.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) &&
      ::fsync(file.get()) == 0 && ::rename(fresh.c_str(), path.c_str()) == 0;
  const int failure = errno;
  wipe(bytes);
  if (is_written) return RunInvitation(run_dir, text.mark);
  if (file.open()) ::unlink(fresh.c_str());
  return file_error("write", path, failure);
}

RunInvitation::RunInvitation(RunInvitation&& other) noexcept
    : run_dir_(std::exchange(other.run_dir_, {})), mark_(std::move(other.mark_)) {}

RunInvitation::~RunInvitation() {
  if (run_dir_.empty()) return;
  auto text = read_invitation(run_dir_);
  if (!text.ok() || !*text || (*text)->mark != mark_) return;
  ::unlink(invitation_path(run_dir_).c_str());
  wipe((*text)->ticket);
}

Result<std::optional<InvitationText>> read_invitation(const std::filesystem::path& run_dir) {
  const std::filesystem::path path = invitation_path(run_dir);
  const OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.open() && (errno == ENOENT || errno == ENOTDIR || errno == ESTALE)) {
    return std::optional<InvitationText>();
  }
  if (!file.open()) return file_error("read", path, errno);

  struct stat facts {};

  if (::fstat(file.get(), &facts) != 0) return file_error("read", path, errno);
  const bool is_private = S_ISREG(facts.st_mode) && facts.st_uid == ::geteuid() &&
                          (facts.st_mode & (S_IRWXG | S_IRWXO)) == 0;
  if (!is_private) {
    return Error{ErrorCode::kUnauthorised, fmt::format("{} is not used", path.string()),
                 "it is not a file of this user alone",
                 "remove it; if its file system keeps no permissions, give --secret-file"};
  }
  std::array<char, kTextBytesMax> buffer{};
  const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
  if (count < 0) return file_error("read", path, errno);
  std::string bytes(buffer.data(), static_cast<std::size_t>(count));
  const std::size_t end = std::min(bytes.find('\n'), bytes.size());
  InvitationText text{bytes.substr(0, end), bytes.substr(std::min(end + 1, bytes.size()))};
  while (text.ticket.ends_with('\n')) text.ticket.pop_back();
  wipe(bytes);
  return std::optional(std::move(text));
}

}  // namespace motley
