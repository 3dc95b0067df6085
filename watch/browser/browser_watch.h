// Serves a run's page to a browser on this machine, and its metrics to monitoring programs, until
// it is interrupted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace motley {

struct BrowserWatchOptions {
  std::uint16_t port = 0;                 // 0 = any free port
  std::filesystem::path token_file = {};  // stores the token (token_file.h); "" = a new token
  bool until_eof = false;    // also ends with standard input; does not print usage advice
  bool for_metrics = false;  // prints the address of the metrics, with a scrape configuration
};

// Prints the address with its token on standard output, then serves until Ctrl-C. kConfig if the
// folder holds no run or the token file is invalid, kPeer if the port is taken, kTerminated after
// SIGTERM. REQUIRES: as of StopSignals.
[[nodiscard]] Result<void> watch_in_browser(const std::filesystem::path& run,
                                            const BrowserWatchOptions& options);

// The section of prometheus.yml that scrapes a server on that port. It refers to the token file, or
// contains the token if `token_file` is empty.
[[nodiscard]] std::string scrape_config(std::uint16_t port,
                                        const std::string& token,
                                        const std::filesystem::path& token_file);

}  // namespace motley
