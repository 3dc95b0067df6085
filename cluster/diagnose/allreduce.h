// Measures the all-reduce over replicas on the machines of a cluster, by the code that reduces
// gradients in training, with synthetic values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "plan/cluster.h"
#include "run_config/config.h"

namespace motley {

struct AllreduceOptions {
  CommConfig comm;  // transport and encryption
  // Codec chains, measured one after another, each with error feedback.
  std::vector<std::string> codecs;
  std::int64_t values = 16 << 20;  // on each rank, 1 to 2^30
  int runs = 5;                    // counted runs per codec; 1 to 100
};

// The results of one codec.
struct AllreduceFigures {
  std::string codec;
  double allreduce_s = 0;            // median of the runs; a run takes as long as its slowest rank
  double bound_s = 0;                // for these bytes, by allreduce_bound_s()
  double cpu_s = 0;                  // of all ranks, in one run
  std::vector<double> uplink_bytes;  // [index in machines] sent to other machines in one run
  double largest_error = 0;          // in one run's all-reduce
  double lost_error = 0;             // of all runs' results plus the error-feedback residuals
};

// Starts a worker on each device of each machine; a rank is a device. kConfig for fewer than two
// ranks, more than 256, an unknown codec, or what choose_transport() refuses; the errors of
// check_reachable(); kCorrupt if two ranks end with different results; else the first failure of a
// worker.
[[nodiscard]] Result<std::vector<AllreduceFigures>> measure_allreduces(
    const Cluster& cluster,
    const AllreduceOptions& options,
    const std::filesystem::path& program,
    const Log& log);

// A lower bound of the time in which the machines send these bytes and receive as many, at the
// speed of each machine's fastest link in that direction. 0 if none are sent.
[[nodiscard]] double allreduce_bound_s(const Cluster& cluster,
                                       const std::vector<double>& uplink_bytes);

}  // namespace motley
