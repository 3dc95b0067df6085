// Transport over plain sockets, one connection for each pair of ranks: with TLS 1.3 where the
// options have a secret (comm/tcp/tls_session.h), so that only holders of it can read, change or
// take part; without one only for one machine or a network declared trusted. Two ranks on one
// machine show each other by TLS that they have the secret and then go on without (decision 0012).
// Needs nothing but the system's sockets and OpenSSL. What travels: docs/formats/tcp.md.
#pragma once

#include <memory>

#include "comm/transport/missing_peer.h"
#include "comm/transport/transport.h"

namespace motley {

// A transport that knows which ranks are on this machine.
class LocatingTransport : public Transport {
 public:
  // Returns whether what goes to the peer and comes from it takes the short way of
  // TransportOptions::local_shortcut. The peer gives the same answer. Any thread may ask, after
  // connect().
  [[nodiscard]] virtual bool is_local(Rank peer) const = 0;
};

// kPeer when the address cannot be bound. `on_missing` may be empty.
[[nodiscard]] Result<std::unique_ptr<LocatingTransport>> make_tcp_transport(
    const TransportOptions& options, OnMissing on_missing = {});

}  // namespace motley
