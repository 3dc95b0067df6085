// Follows a run on a terminal: redrawn in place, or line by line if the output cannot be redrawn.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace motley {

struct TerminalWatchOptions {
  // The environment's TERM and NO_COLOR (no-color.org); nullptr = not set.
  const char* term = nullptr;
  const char* no_color = nullptr;
};

// Shows the run on standard output until q or Ctrl-C. If standard output is not a terminal, prints
// the events and a periodic line until the run ends. kConfig if the folder holds no run,
// kTerminated after SIGTERM. REQUIRES: as of StopSignals.
[[nodiscard]] Result<void> watch_in_terminal(const std::filesystem::path& run,
                                             const TerminalWatchOptions& options);

}  // namespace motley
