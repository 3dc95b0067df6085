// Transport over Gloo's TCP pairs. Not authenticated: only for one machine or a trusted network.
// Does not detect a frozen or disconnected peer; must be wrapped by make_watched_transport().
#pragma once

#include <memory>

#include "comm/tcp/watched_transport.h"

namespace motley {

// kPeer if the address cannot be bound.
[[nodiscard]] Result<std::unique_ptr<WatchableTransport>> make_gloo_transport(
    const TransportOptions& options);

}  // namespace motley
