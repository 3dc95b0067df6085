// Measuring the sum over replicas on the machines of a cluster: the same code that sums gradients
// in training, with made-up values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "job/config.h"
#include "plan/cluster.h"

namespace motley {

struct AllreduceOptions {
  CommConfig comm;                  // the transport and whether it encrypts
  std::vector<std::string> codecs;  // chains, one sum after another, each with error feedback
  std::int64_t values = 16 << 20;   // on each rank, 1 to 2^30
  int runs = 5;                     // that count, of each codec; 1 to 100
};

// Of one codec.
struct AllreduceFigures {
  std::string codec;
  double sum_s = 0;                  // median of the runs, each as long as its slowest rank
  double bound_s = 0;                // of these bytes, as allreduce_bound_s()
  double cpu_s = 0;                  // of all ranks, in one run
  std::vector<double> uplink_bytes;  // [index in machines] that leave it for others in one run
  double largest_error = 0;          // of one run's sums
  double lost_error = 0;             // of all runs' sums and what the ranks keep for later
};

// Starts a worker on each device of each machine; a rank is a device. kConfig for fewer than two
// ranks, more than 256, or what choose_transport() refuses or is no codec; what check_reachable()
// finds; kCorrupt when two ranks end with different sums; else the first failure of a worker.
[[nodiscard]] Result<std::vector<AllreduceFigures>> measure_allreduces(
    const Cluster& cluster,
    const AllreduceOptions& options,
    const std::filesystem::path& program,
    const Log& log);

// The least time in which these bytes leave the machines, and as many come in, at the speed of each
// machine's fastest link in that direction. 0 where nothing leaves.
[[nodiscard]] double allreduce_bound_s(const Cluster& cluster,
                                       const std::vector<double>& uplink_bytes);

}  // namespace motley
