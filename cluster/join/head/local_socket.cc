#include "cluster/join/head/local_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "cluster/join/join_frame.h"

namespace motley {
namespace {

constexpr std::size_t kFdsMax = 3;
constexpr int kLocalBacklog = 64;

Error socket_error(const std::string& what) {
  return {ErrorCode::kInternal, what, std::strerror(errno), "check TMPDIR and the limit of files"};
}

std::optional<sockaddr_un> address_of(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string text = path.string();
  if (text.size() >= sizeof(address.sun_path)) return std::nullopt;
  std::memcpy(address.sun_path, text.data(), text.size());
  return address;
}

const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

}  // namespace

LocalSocket::~LocalSocket() {
  if (folder_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Result<LocalSocket> LocalSocket::open() {
  LocalSocket local;
  // Not TMPDIR: the path of a socket is at most 107 bytes long.
  std::string name = "/tmp/motley-head-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) return socket_error("cannot make a folder in /tmp");
  local.folder_ = name;
  local.fd_ = OwnedFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto address = address_of(local.path());
  if (!local.fd_.open() || !address ||
      ::bind(local.fd_.get(), generic(*address), sizeof(*address)) != 0 ||
      ::listen(local.fd_.get(), kLocalBacklog) != 0) {
    return socket_error(fmt::format("cannot listen at {}", local.path().string()));
  }
  return local;
}

std::optional<OwnedFd> LocalSocket::accept() const {
  OwnedFd connection(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  if (!connection.open() ||
      ::getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 ||
      peer.uid != ::getuid()) {
    return std::nullopt;
  }
  return connection;
}

Result<OwnedFd> connect_local(const std::filesystem::path& socket) {
  OwnedFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const auto address = address_of(socket);
  if (fd.open() && address && ::connect(fd.get(), generic(*address), sizeof(*address)) == 0) {
    return fd;
  }
  return Error{ErrorCode::kPeer, "the head of the joined machines has ended", std::strerror(errno),
               ""};
}

bool send_local(const OwnedFd& connection, std::string_view text, const std::vector<int>& fds) {
  iovec part{.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kFdsMax * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
  }
  ssize_t sent = -1;
  do {
    sent = ::sendmsg(connection.get(), &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(text.size());
}

std::optional<LocalMessage> receive_local(const OwnedFd& connection) {
  LocalMessage received;
  received.text.resize(kJoinBytesMax);
  iovec part{.iov_base = received.text.data(), .iov_len = received.text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kFdsMax * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t bytes = -1;
  do {
    bytes = ::recvmsg(connection.get(), &message, MSG_CMSG_CLOEXEC);
  } while (bytes < 0 && errno == EINTR);
  const cmsghdr* const header = bytes < 0 ? nullptr : CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    std::array<int, kFdsMax> fds{};
    std::memcpy(fds.data(), CMSG_DATA(header), count * sizeof(int));
    for (std::size_t i = 0; i < count; ++i) received.fds.emplace_back(fds[i]);
  }
  if (bytes <= 0) return std::nullopt;
  received.text.resize(static_cast<std::size_t>(bytes));
  return received;
}

}  // namespace motley
