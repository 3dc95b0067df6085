#include "bench/socket_ping.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/clock.h"
#include "base/median.h"
#include "base/system/files.h"

namespace motley {
namespace {

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}

  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }

  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

Error failed(const char* what) {
  return {ErrorCode::kPeer, fmt::format("{} failed", what), std::strerror(errno), ""};
}

sockaddr_in socket_address(const std::string& address, std::uint16_t port) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_port = htons(port);
  inet_pton(AF_INET, address.c_str(), &result.sin_addr);
  return result;
}

void send_at_once(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool send_all(int fd, const std::vector<char>& message) {
  return ::send(fd, message.data(), message.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(message.size());
}

bool receive_all(int fd, std::vector<char>& message) {
  return ::recv(fd, message.data(), message.size(), MSG_WAITALL) ==
         static_cast<ssize_t>(message.size());
}

}  // namespace

Result<void> serve_pings(const std::string& address,
                         const std::string& port_file,
                         std::size_t bytes) {
  const Socket door(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in own = socket_address(address, 0);
  socklen_t own_bytes = sizeof own;
  auto* generic = reinterpret_cast<sockaddr*>(&own);
  if (::bind(door.fd(), generic, sizeof own) != 0 || ::listen(door.fd(), 1) != 0 ||
      ::getsockname(door.fd(), generic, &own_bytes) != 0) {
    return failed("listening");
  }
  MOTLEY_TRY(write_file_atomic(port_file, std::to_string(ntohs(own.sin_port))));
  const Socket peer(::accept4(door.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  if (peer.fd() < 0) return failed("accepting");
  send_at_once(peer.fd());
  std::vector<char> message(bytes);
  while (receive_all(peer.fd(), message)) {
    if (!send_all(peer.fd(), message)) return failed("answering");
  }
  return {};
}

Result<double> measure_ping_s(const std::string& address,
                              std::uint16_t port,
                              std::size_t bytes,
                              double seconds) {
  const Socket peer(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in to = socket_address(address, port);
  if (::connect(peer.fd(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    return failed("connecting");
  }
  send_at_once(peer.fd());
  std::vector<char> message(bytes);
  std::vector<double> times_s;
  const Deadline until = Deadline::after_s(seconds);
  while (times_s.empty() || !until.passed()) {
    const double start_s = now_s();
    if (!send_all(peer.fd(), message) || !receive_all(peer.fd(), message)) return failed("a ping");
    times_s.push_back(now_s() - start_s);
  }
  return median(std::move(times_s)) / 2;
}

}  // namespace motley
