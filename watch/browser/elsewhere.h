// A run that lies on another machine, "box:runs/gpt": looked at through ssh, which knows who may.
// There, the same program reads the run's folder, as its person, and answers on the machine itself;
// ssh brings its port here. It ends with the connection. Decision 0037.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "watch/browser/browser_watch.h"

namespace motley {

struct RunElsewhere {
  std::string host;    // as ssh takes it: "box", "anna@box"
  std::string folder;  // there; seen from the person's home where it is relative
};

// Nothing where the operand is a path on this machine: it exists here, or has no host before a
// colon.
[[nodiscard]] std::optional<RunElsewhere> run_elsewhere(const std::string& operand);

// Prints the address and serves, as watch_in_browser does, until Ctrl-C. `program`: this program,
// taken there too where it lies at the same place, else "motley" of the PATH there. kPeer where the
// machine cannot be reached or the connection is lost; else what ends motley watch there, which
// says why on standard error. kUsage with a token's file, which would be one of this machine.
// REQUIRES: as of StopSignals.
[[nodiscard]] Result<void> watch_elsewhere(const RunElsewhere& run,
                                           BrowserWatchOptions options,
                                           const std::filesystem::path& program);

// The screen of a terminal there, on this one: becomes ssh, and returns only where that fails.
// no_color: the value of NO_COLOR; nullptr = not set.
[[nodiscard]] Error become_screen_elsewhere(const RunElsewhere& run,
                                            const std::filesystem::path& program,
                                            const char* no_color);

// The words of ssh for the first of them. REQUIRES: options.port is not 0.
[[nodiscard]] std::vector<std::string> command_elsewhere(const RunElsewhere& run,
                                                         const BrowserWatchOptions& options,
                                                         const std::filesystem::path& program);

}  // namespace motley
