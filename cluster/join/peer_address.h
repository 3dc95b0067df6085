// Numeric addresses of TCP sockets.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/system/owned_fd.h"

namespace motley {

// A listening, non-blocking socket at a numeric address; "" = at all addresses of this machine;
// port 0 = a free one. kPeer, naming address and port, if that is not possible.
[[nodiscard]] Result<OwnedFd> listen_at(const std::string& address, std::uint16_t port);

// The port of a listening socket.
[[nodiscard]] std::uint16_t port_of(const OwnedFd& socket);

// A connected, non-blocking socket without delays of small messages. kPeer, naming address and
// port, if there is none within `wait_s`.
[[nodiscard]] Result<OwnedFd> connect_to(const std::string& address,
                                         std::uint16_t port,
                                         double wait_s);

// The numeric addresses of both ends of a connected socket; IPv4 without the prefix that it has on
// a socket for both versions.
struct ConnectionAddresses {
  std::string here;
  std::string there;
};

[[nodiscard]] ConnectionAddresses addresses_of(const OwnedFd& socket);

// "10.0.0.1 port 40123", for messages.
[[nodiscard]] std::string place_text(const std::string& address, std::uint16_t port);

void send_without_delay(const OwnedFd& socket);

}  // namespace motley
