#include "cluster/join/peer_address.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <optional>

#include <boost/asio/ip/tcp.hpp>

namespace motley {
namespace {

namespace asio = boost::asio;
using Endpoint = asio::ip::tcp::endpoint;

constexpr int kBacklog = 128;

// A numeric address and a port; nullopt if the text is no such address.
std::optional<Endpoint> endpoint_at(const std::string& address, std::uint16_t port) {
  boost::system::error_code failure;
  const auto parsed = asio::ip::make_address(address, failure);
  return failure ? std::nullopt : std::optional(Endpoint(parsed, port));
}

// One end of a socket, as `get` (getsockname, getpeername) reports it; nullopt if it has none.
template <class Get>
std::optional<Endpoint> end_of(const OwnedFd& socket, Get get) {
  Endpoint end;
  auto bytes = static_cast<socklen_t>(end.capacity());
  if (get(socket.get(), end.data(), &bytes) != 0) return std::nullopt;
  end.resize(bytes);
  return end;
}

std::string numeric_text(const std::optional<Endpoint>& end) {
  if (!end) return "";
  const asio::ip::address address = end->address();
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address.to_string();
  return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
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
  const auto place = endpoint_at(address, port);
  if (!place) {
    return Error{ErrorCode::kUsage, fmt::format("'{}' is not a numeric address", excerpt(address)),
                 "", "give an address of this machine, such as 192.168.1.10"};
  }
  OwnedFd socket = new_socket(place->protocol().family());
  const int yes = 1;
  const int no = 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (place->address().is_v6()) {
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
  }
  if (!socket.open() ||
      ::bind(socket.get(), place->data(), static_cast<socklen_t>(place->size())) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    return cannot(fmt::format("cannot listen at {}", place_text(address, port)), errno,
                  "choose another port or address with --listen");
  }
  return socket;
}

std::uint16_t port_of(const OwnedFd& socket) {
  const auto own = end_of(socket, ::getsockname);
  return own ? own->port() : 0;
}

Result<OwnedFd> connect_to(const std::string& address, std::uint16_t port, double wait_s) {
  const std::string what = fmt::format("cannot connect to {}", place_text(address, port));
  const auto place = endpoint_at(address, port);
  if (!place) return Error{ErrorCode::kPeer, what, "it is not a numeric address", ""};
  OwnedFd socket = new_socket(place->protocol().family());
  if (!socket.open()) return cannot(what, errno, "");
  if (::connect(socket.get(), place->data(), static_cast<socklen_t>(place->size())) != 0) {
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
  return {numeric_text(end_of(socket, ::getsockname)), numeric_text(end_of(socket, ::getpeername))};
}

}  // namespace motley
