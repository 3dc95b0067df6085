// Profiles the devices of a cluster with the worker's own layers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "models/spec/model_spec.h"
#include "plan/cluster.h"
#include "plan/profile.h"
#include "run_config/config.h"

namespace motley {

struct MeasureOptions {
  bool anew = false;        // do not use the machines' stored profiles
  bool quiet = false;       // no live progress line; the log's level applies separately
  bool all_codecs = false;  // also codecs that no plan selects by itself
  // Whether it is acceptable that no device computes in train.precision: others may.
  bool any_precision = false;
  // The memory that every plan needs, over all devices together: a cluster with less is not
  // profiled.
  std::int64_t least_bytes = 0;
};

// The memory of every plan: the model's parameters, their gradients, the optimizer's moments and
// the constants.
[[nodiscard]] std::int64_t least_memory_bytes(const ModelSpec& model, int moments_per_parameter);

// Runs a profiling worker on every device of every machine in parallel, as in a training, and
// returns the measured or stored profiles. Simulated devices that are started alike share one
// worker. Reports its progress in the log or on a terminal. Several equal devices of one machine
// give one entry, the slowest. Devices that `known` covers are not measured again. kInfeasible if
// the devices have less memory than options.least_bytes, kConfig if none of them computes in
// train.precision. REQUIRES: check_reachable() for the machines of the others.
[[nodiscard]] Result<Profile> measure_cluster(const Cluster& cluster,
                                              const Config& config,
                                              const std::filesystem::path& program,
                                              const Profile& known,
                                              const MeasureOptions& options,
                                              const Log& log);

// Logs in one line which devices' times varied, and the details at the level debug: temporary load
// needs no action by the user.
void warn_of(const Profile& profile, const Log& log);

// The micro-batch sizes to measure for a config: train.micro_batch alone if it is set, else the
// smallest and some larger divisors of the global batch.
[[nodiscard]] std::vector<int> sizes_to_measure(const TrainConfig& train);

}  // namespace motley
