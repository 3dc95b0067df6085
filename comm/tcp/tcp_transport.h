// Transport over plain sockets, one connection per pair of ranks. With a secret in the options it
// uses TLS 1.3 (comm/tcp/tls_session.h), so that only holders of the secret can read, change or
// take part. Without one it is only for one machine or a trusted network. Two ranks on one machine
// authenticate by TLS and then continue without it (decision 0012). Needs only the system's sockets
// and OpenSSL. Wire format: docs/formats/tcp.md.
#pragma once

#include <memory>

#include "comm/transport/missing_peer.h"
#include "comm/transport/transport.h"

namespace motley {

// A transport that knows which ranks are on this machine.
class LocatingTransport : public Transport {
 public:
  // Returns whether the connection to the peer uses the local mode of
  // TransportOptions::local_shortcut. The peer gives the same answer. Any thread may ask, after
  // connect().
  [[nodiscard]] virtual bool is_local(Rank peer) const = 0;
};

// kPeer if the address cannot be bound. `on_missing` may be empty.
[[nodiscard]] Result<std::unique_ptr<LocatingTransport>> make_tcp_transport(
    const TransportOptions& options, OnMissing on_missing = {});

}  // namespace motley
