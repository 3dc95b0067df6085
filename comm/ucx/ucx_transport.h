// Transport over UCX (ucp tag messages on TCP): the fast path between Linux workers. Not
// authenticated: only for one machine or a network declared trusted. Does not notice a peer that is
// frozen or cut off: to be watched.
#pragma once

#include <memory>

#include "comm/tcp/watched_transport.h"

namespace motley {

// Keeps UCX from writing to stderr and from taking signals, in the whole process. It takes them
// when it is loaded, whether it is used or not.
void quiet_ucx();

// kPeer when no interface has the address, or UCX cannot use it.
[[nodiscard]] Result<std::unique_ptr<WatchableTransport>> make_ucx_transport(
    const TransportOptions& options);

}  // namespace motley
