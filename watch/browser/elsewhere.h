// A run on another machine, "box:runs/gpt", viewed through ssh, which authenticates the user. The
// same program runs there as that user, reads the run's folder and serves on the remote loopback
// address; ssh forwards its port to this machine. It ends with the connection. Decision 0037.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "watch/browser/browser_watch.h"

namespace motley {

struct RunElsewhere {
  std::string host;    // as ssh accepts it: "box", "anna@box"
  std::string folder;  // on that machine; a relative path starts at the user's home
};

// Nothing if the operand is a local path: it exists on this machine, or has no host before a colon.
[[nodiscard]] std::optional<RunElsewhere> run_elsewhere(const std::string& operand);

// Prints the address and serves until Ctrl-C, as watch_in_browser does. `program`: this program's
// path; it is used on the remote machine too if it exists there, else "motley" from the remote
// PATH. kPeer if the machine cannot be reached or the connection is lost; otherwise the error of
// the remote motley watch, which prints its reason on standard error. kUsage with a token file,
// which would be a local one. REQUIRES: as of StopSignals.
[[nodiscard]] Result<void> watch_elsewhere(const RunElsewhere& run,
                                           BrowserWatchOptions options,
                                           const std::filesystem::path& program);

// Shows the remote run in this terminal: replaces this process with ssh, and returns only if that
// fails. no_color: the value of NO_COLOR; nullptr = not set.
[[nodiscard]] Error become_screen_elsewhere(const RunElsewhere& run,
                                            const std::filesystem::path& program,
                                            const char* no_color);

// The ssh command line of watch_elsewhere. REQUIRES: options.port is not 0.
[[nodiscard]] std::vector<std::string> command_elsewhere(const RunElsewhere& run,
                                                         const BrowserWatchOptions& options,
                                                         const std::filesystem::path& program);

}  // namespace motley
