// Transport over plain sockets, one connection for each pair of ranks: with TLS 1.3 where the
// options have a secret (comm/tls_session.h), so that only holders of it can read, change or take
// part; without one only for one machine or a network declared trusted. Needs nothing but the
// system's sockets and OpenSSL. What travels: docs/formats/tcp.md.
#pragma once

#include <memory>

#include "comm/transport.h"

namespace motley {

// kPeer when the address cannot be bound.
[[nodiscard]] Result<std::unique_ptr<Transport>> make_tcp_transport(
    const TransportOptions& options);

}  // namespace motley
