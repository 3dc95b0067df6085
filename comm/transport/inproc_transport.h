// Transports between ranks of one process (tests, dry runs), which share memory.
#pragma once

#include <memory>
#include <vector>

#include "comm/transport/transport.h"

namespace motley {

// One transport per rank.
[[nodiscard]] std::vector<std::unique_ptr<Transport>> make_inproc_transports(int rank_count);

}  // namespace motley
