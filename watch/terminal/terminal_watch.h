// Follows a run on a terminal: redrawn in place, or line by line where nothing can be redrawn.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace motley {

struct TerminalWatchOptions {
  // The values of the environment's TERM and NO_COLOR (no-color.org); nullptr = not set.
  const char* term = nullptr;
  const char* no_color = nullptr;
};

// Shows the run on standard output until the person leaves with q or Ctrl-C. Where standard output
// is no terminal: the events and a line now and then, to the end of the run. kConfig when there is
// no run in the folder, kTerminated after SIGTERM. REQUIRES: as of StopSignals.
[[nodiscard]] Result<void> watch_in_terminal(const std::filesystem::path& run,
                                             const TerminalWatchOptions& options);

}  // namespace motley
