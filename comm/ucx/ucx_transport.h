// Transport over UCX (ucp tag messages on TCP): the fast path between Linux workers. Not
// authenticated: only for one machine or a trusted network. Does not detect a frozen or
// disconnected peer; must be wrapped by make_watched_transport().
#pragma once

#include <memory>

#include "comm/tcp/watched_transport.h"

namespace motley {

// Disables UCX's output to stderr and its signal handlers in the whole process. UCX installs the
// handlers when it is loaded, even if it is not used.
void quiet_ucx();

// kPeer if no interface has the address, or UCX cannot use it.
[[nodiscard]] Result<std::unique_ptr<WatchableTransport>> make_ucx_transport(
    const TransportOptions& options);

}  // namespace motley
