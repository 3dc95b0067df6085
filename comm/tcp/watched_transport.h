// A watched transport is for transports that cannot distinguish a frozen or disconnected peer from
// an idle one. It adds plain TCP connections beside theirs, on which the ranks exchange heartbeats
// (comm/tcp/tcp_peer.h). A peer lost there is lost for the transport too.
//
// The heartbeats use separate connections: behind a large message a heartbeat would arrive too
// late, and UCX and Gloo do not report the progress of such a message.
#pragma once

#include <memory>
#include <string>

#include "comm/tcp/tcp_transport.h"
#include "comm/transport/transport.h"

namespace motley {

// A transport that can be informed of lost peers.
class WatchableTransport : public Transport {
 public:
  // Ends every current and future operation with the peer with kPeer and this cause. The first
  // cause is retained. May be called after connect(), from any thread.
  virtual void lose(Rank peer, const std::string& cause) = 0;
};

// `beside`: of the same rank and group, used by no other code. Its address becomes part of the
// address.
[[nodiscard]] std::unique_ptr<Transport> make_watched_transport(
    std::unique_ptr<WatchableTransport> watched, std::unique_ptr<Transport> beside, Rank self);

}  // namespace motley
