// Measures the links of a cluster through the transport that the training will use.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "plan/cluster.h"
#include "plan/links.h"
#include "run_config/config.h"

namespace motley {

struct ProbeOptions {
  CommConfig comm;     // transport and encryption
  double seconds = 1;  // for each direction of each pair; 0 < seconds <= 60
  // Called before each line that goes to the log, so that a live line can erase itself.
  std::function<void()> before_log = {};
  // Called after each measured direction, with the number of measured ones and of all.
  std::function<void(std::size_t done, std::size_t of)> on_link = {};
};

// The processor time of a message at the two ends of a link, per byte.
struct LinkCpu {
  double send_s_per_byte = 0;
  double receive_s_per_byte = 0;
};

struct ProbeReport {
  Links links;                        // every ordered pair of machines
  std::vector<LinkCpu> cpu;           // [index in links]
  std::vector<std::string> networks;  // [index in machines] the interface it uses, and why
  std::string transport;              // the transport of the measurement, and why
};

// Starts a worker on each machine and measures one direction of one pair at a time. kConfig for
// fewer than two machines, more than 64, or what choose_transport() refuses; the errors of
// check_reachable(); else the first failure of a worker.
[[nodiscard]] Result<ProbeReport> probe_links(const Cluster& cluster,
                                              const ProbeOptions& options,
                                              const std::filesystem::path& program,
                                              const Log& log);

}  // namespace motley
