#include "cluster/join/peer_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>

namespace motley {
namespace {

constexpr int kBacklog = 128;

struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t size = sizeof(sockaddr_storage);

  [[nodiscard]] const sockaddr* generic() const {
    return reinterpret_cast<const sockaddr*>(&bytes);
  }

  [[nodiscard]] sockaddr* generic() { return reinterpret_cast<sockaddr*>(&bytes); }
};

std::optional<SocketAddress> socket_address(const std::string& address, std::uint16_t port) {
  SocketAddress made;
  sockaddr_in v4{};
  if (::inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    made.size = sizeof(v4);
    std::memcpy(&made.bytes, &v4, sizeof(v4));
    return made;
  }
  sockaddr_in6 v6{};
  if (::inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) != 1) return std::nullopt;
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  made.size = sizeof(v6);
  std::memcpy(&made.bytes, &v6, sizeof(v6));
  return made;
}

std::string numeric_text(const SocketAddress& address) {
  std::array<char, NI_MAXHOST> text{};
  const int status = ::getnameinfo(address.generic(), address.size, text.data(), text.size(),
                                   nullptr, 0, NI_NUMERICHOST);
  constexpr std::string_view kMapped = "::ffff:";
  const std::string numeric = status == 0 ? text.data() : "";
  return numeric.starts_with(kMapped) ? numeric.substr(kMapped.size()) : numeric;
}

Error cannot(const std::string& what, int errno_value, const std::string& remedy) {
  return {ErrorCode::kPeer, what, std::strerror(errno_value), remedy};
}

OwnedFd new_socket(int family) {
  return OwnedFd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// At all addresses of both versions of IP; of IPv4 alone where the system has no IPv6.
Result<OwnedFd> listen_everywhere(std::uint16_t port) {
  Result<OwnedFd> both = listen_at("::", port);
  return both.ok() ? std::move(both) : listen_at("0.0.0.0", port);
}

}  // namespace

std::string place_text(const std::string& address, std::uint16_t port) {
  return fmt::format("{} port {}", address, port);
}

void send_without_delay(const OwnedFd& socket) {
  const int yes = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

Result<OwnedFd> listen_at(const std::string& address, std::uint16_t port) {
  if (address.empty()) return listen_everywhere(port);
  const auto place = socket_address(address, port);
  if (!place) {
    return Error{ErrorCode::kUsage, fmt::format("'{}' is not a numeric address", excerpt(address)),
                 "", "give an address of this machine, such as 192.168.1.10"};
  }
  OwnedFd socket = new_socket(place->bytes.ss_family);
  const int yes = 1;
  const int no = 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (place->bytes.ss_family == AF_INET6) {
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
  }
  if (!socket.open() || ::bind(socket.get(), place->generic(), place->size) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    return cannot(fmt::format("cannot listen at {}", place_text(address, port)), errno,
                  "choose another port or address with --listen");
  }
  return socket;
}

std::uint16_t port_of(const OwnedFd& socket) {
  SocketAddress address;
  if (::getsockname(socket.get(), address.generic(), &address.size) != 0) return 0;
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address.bytes, sizeof(v6));  // the port is at the same place in both versions
  return ntohs(v6.sin6_port);
}

Result<OwnedFd> connect_to(const std::string& address, std::uint16_t port, double wait_s) {
  const std::string what = fmt::format("cannot connect to {}", place_text(address, port));
  const auto place = socket_address(address, port);
  if (!place) return Error{ErrorCode::kPeer, what, "it is not a numeric address", ""};
  OwnedFd socket = new_socket(place->bytes.ss_family);
  if (!socket.open()) return cannot(what, errno, "");
  if (::connect(socket.get(), place->generic(), place->size) != 0) {
    if (errno != EINPROGRESS) return cannot(what, errno, "");
    pollfd ready{.fd = socket.get(), .events = POLLOUT, .revents = 0};
    if (::poll(&ready, 1, static_cast<int>(std::ceil(wait_s * 1e3))) <= 0) {
      return Error{ErrorCode::kPeer, what, fmt::format("no answer within {:g} s", wait_s), ""};
    }
    int failure = 0;
    socklen_t bytes = sizeof(failure);
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &failure, &bytes);
    if (failure != 0) return cannot(what, failure, "");
  }
  send_without_delay(socket);
  return socket;
}

ConnectionAddresses addresses_of(const OwnedFd& socket) {
  SocketAddress here;
  SocketAddress there;
  ConnectionAddresses both;
  if (::getsockname(socket.get(), here.generic(), &here.size) == 0) both.here = numeric_text(here);
  if (::getpeername(socket.get(), there.generic(), &there.size) == 0) {
    both.there = numeric_text(there);
  }
  return both;
}

}  // namespace motley
