// The one place that knows which transports a build has.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/transport/missing_peer.h"
#include "comm/transport/transport.h"

namespace motley {

// "auto" is TCP (decision 0040). One that is named carries everything. kConfig, naming what this
// build has, for one that it lacks, and for one that cannot keep a secret; kPeer when the address
// cannot be bound.
// `on_missing` may be empty; only TCP's connections call it.
[[nodiscard]] Result<std::unique_ptr<Transport>> make_transport(const TransportOptions& options,
                                                                OnMissing on_missing = {});

// What the transports' libraries do to a process by being loaded is undone: its signals are its own
// again, and they write nothing to standard error. To be called where a program starts.
void quiet_transports();

// The kinds that this build has, that of "auto" first.
[[nodiscard]] std::vector<std::string> transport_kinds();

}  // namespace motley
