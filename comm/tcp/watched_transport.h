// A watched transport serves transports that cannot tell a peer that is frozen, or behind a cut
// cable, from one that has nothing to say. It adds connections of plain TCP beside theirs, on which
// the ranks give each other signs of life (comm/tcp/tcp_peer.h). Whom those lose is lost for the
// transport too.
//
// Beside, not through it: a beat that waits behind a large message would come too late, and how far
// such a message has come UCX and Gloo do not say.
#pragma once

#include <memory>
#include <string>

#include "comm/tcp/tcp_transport.h"
#include "comm/transport/transport.h"

namespace motley {

// A transport that can be told what it does not notice itself.
class WatchableTransport : public Transport {
 public:
  // Ends every operation with the peer, now and later, with kPeer and this cause. The first cause
  // stays. After connect(); any thread.
  virtual void lose(Rank peer, const std::string& cause) = 0;
};

// `beside`: of the same rank and group, and nobody else's. Its address becomes part of the address.
[[nodiscard]] std::unique_ptr<Transport> make_watched_transport(
    std::unique_ptr<WatchableTransport> watched, std::unique_ptr<Transport> beside, Rank self);

}  // namespace motley
