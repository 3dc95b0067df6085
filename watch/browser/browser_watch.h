// Shows a run in a browser on this machine, and to programs that collect metrics: serves until the
// person has seen enough.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace motley {

struct BrowserWatchOptions {
  std::uint16_t port = 0;                 // 0: one that is free
  std::filesystem::path token_file = {};  // that keeps the token (token_file.h); "" = a new one
  bool until_eof = false;    // ends with standard input too, and leaves advice to who started it
  bool for_metrics = false;  // the address printed is that of the metrics, with how to scrape it
};

// Prints the address with its token on standard output, then serves until Ctrl-C. kConfig when
// there is no run in the folder or the token's file is not fit, kPeer where the port is taken,
// kTerminated after SIGTERM. REQUIRES: as of StopSignals.
[[nodiscard]] Result<void> watch_in_browser(const std::filesystem::path& run,
                                            const BrowserWatchOptions& options);

// For people: what to add to prometheus.yml to scrape a server at that port: its token is in the
// file, or stands there where there is none.
[[nodiscard]] std::string scrape_config(std::uint16_t port,
                                        const std::string& token,
                                        const std::filesystem::path& token_file);

}  // namespace motley
