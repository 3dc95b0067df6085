// Shows a run in a browser on this machine: serves its page until the person has seen enough.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"

namespace motley {

// Prints the address with its token on standard output, then serves until Ctrl-C. `port` 0: one
// that is free. kConfig when there is no run in the folder, kPeer where the port is taken,
// kTerminated after SIGTERM. REQUIRES: as of StopSignals.
[[nodiscard]] Result<void> watch_in_browser(const std::filesystem::path& run, std::uint16_t port);

}  // namespace motley
