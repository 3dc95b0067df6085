// Converts the ranks of a plan into worker processes: names, addresses, jobs.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/launch/worker_group.h"
#include "plan/cluster.h"
#include "plan/plan.h"
#include "run_config/config.h"

namespace motley {

[[nodiscard]] std::set<std::string> machines_in_use(const Plan& plan);

// The names of all machines.
[[nodiscard]] std::set<std::string> machine_names(const Cluster& cluster);

// One worker per rank, its job complete except for the transport, `resume_from` and `stop_after`.
// Relative paths in the config become absolute, relative to this process's folder. `program` is
// motley-stage here; machines with a motley_dir have their own.
[[nodiscard]] std::vector<WorkerSpec> training_workers(const Cluster& cluster,
                                                       const Plan& plan,
                                                       const Config& config,
                                                       const std::filesystem::path& program,
                                                       const std::filesystem::path& run_dir);

// The path of motley-stage on that machine.
[[nodiscard]] std::filesystem::path stage_program_on(const Machine& machine,
                                                     const std::filesystem::path& program);
// The path of motley-store, in the same folder.
[[nodiscard]] std::filesystem::path store_program_on(const Machine& machine,
                                                     const std::filesystem::path& program);

// The config with data.path, data.holdout_path and model.init_from absolute.
[[nodiscard]] Config with_absolute_paths(Config config);

}  // namespace motley
