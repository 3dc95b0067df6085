// Transport over Gloo's TCP pairs. Not authenticated: only for one machine or a network declared
// trusted. Does not notice a peer that is frozen or cut off: to be watched.
#pragma once

#include <memory>

#include "comm/tcp/watched_transport.h"

namespace motley {

// kPeer when the address cannot be bound.
[[nodiscard]] Result<std::unique_ptr<WatchableTransport>> make_gloo_transport(
    const TransportOptions& options);

}  // namespace motley
