// Measuring the devices of a cluster with the worker's own layers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "job/config.h"
#include "models/spec/model_spec.h"
#include "plan/cluster.h"
#include "plan/profile.h"

namespace motley {

struct MeasureOptions {
  bool anew = false;        // also what the machines have kept of an earlier start
  bool quiet = false;       // no line that is drawn again and again; the log's level counts besides
  bool all_codecs = false;  // also those that no plan takes by itself
  // Whether it is well where no device has the numbers of train.precision: others may.
  bool any_precision = false;
  // Of memory that any plan takes, over all devices together: a cluster with less is not measured.
  std::int64_t least_bytes = 0;
};

// What every plan holds: the model's parameters, their gradients, the optimizer's moments and what
// never changes.
[[nodiscard]] std::int64_t least_memory_bytes(const ModelSpec& model, int moments_per_parameter);

// Runs a profiling worker on every device of every machine of the cluster at the same time, as the
// training will, and returns what they measured or had kept; of virtual devices on one worker for
// all that are started alike. Tells how far it is, by the log or on
// a terminal. Several equal devices of one machine give one entry, the slowest. Devices that
// `known` already covers are not measured again. kInfeasible when the devices have less memory than
// options.least_bytes, kConfig when none of them computes in train.precision. REQUIRES:
// check_reachable() for the machines of the others.
[[nodiscard]] Result<Profile> measure_cluster(const Cluster& cluster,
                                              const Config& config,
                                              const std::filesystem::path& program,
                                              const Profile& known,
                                              const MeasureOptions& options,
                                              const Log& log);

// Says in one line which devices' times are not to be trusted too far, and the details at the level
// debug: what was busy for a while is nothing that people have to act upon.
void warn_of(const Profile& profile, const Log& log);

// Micro-batch sizes worth measuring for a config: train.micro_batch alone when it is set, else the
// smallest and some larger divisors of the global batch.
[[nodiscard]] std::vector<int> sizes_to_measure(const TrainConfig& train);

}  // namespace motley
