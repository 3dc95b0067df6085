// Transport over Gloo's TCP pairs. Not authenticated: only for one machine or a network declared
// trusted.
#pragma once

#include <memory>

#include "comm/transport.h"

namespace motley {

// kPeer when the address cannot be bound.
[[nodiscard]] Result<std::unique_ptr<Transport>> make_gloo_transport(
    const TransportOptions& options);

}  // namespace motley
