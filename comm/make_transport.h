// The only code that knows which transports a build has.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/transport/missing_peer.h"
#include "comm/transport/transport.h"

namespace motley {

// "auto" is TCP (decision 0040). An explicitly chosen transport carries everything. kConfig for a
// kind that this build lacks (the error lists the existing ones) or that cannot encrypt although a
// secret is given; kPeer if the address cannot be bound. `on_missing` may be empty; only TCP's
// connections call it.
[[nodiscard]] Result<std::unique_ptr<Transport>> make_transport(const TransportOptions& options,
                                                                OnMissing on_missing = {});

// Undoes side effects of loading the transports' libraries: restores the process's signal handlers
// and disables their output to standard error. Must be called at program start.
void quiet_transports();

// The kinds that this build has; the first is that of "auto".
[[nodiscard]] std::vector<std::string> transport_kinds();

}  // namespace motley
