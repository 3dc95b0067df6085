// Expands "auto" among a machine's devices, before profiling and planning: no plan and no profile
// contains it.
//
// It becomes all accelerators of the machine, or its processor if it has none. Beside an
// accelerator the processor is left out: it feeds the accelerators and encodes their messages, is
// tens of times slower, and profiling it would not pay. To use both, the cluster file names both.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "plan/cluster.h"
#include "plan/plan.h"
#include "plan/profile.h"
#include "protocol/device_facts.h"

namespace motley {

// Expands `at_least` entries "auto" to devices of `there`, by name: the accelerators, or as many
// processes on the processor if there are fewer accelerators.
[[nodiscard]] std::vector<std::string> automatic_devices(const std::vector<std::string>& there,
                                                         std::size_t at_least);
// The same for the devices found on a machine, without faulty ones.
[[nodiscard]] std::vector<std::string> automatic_devices(const DevicesFound& found,
                                                         std::size_t at_least);

// Replaces "auto" on machines that the profile contains: by the accelerators that it names, else
// the processor.
void settle_by_profile(Cluster& cluster, const Profile& profile);
// Replaces "auto" by the devices that the plan uses, else the processor.
void settle_by_plan(Cluster& cluster, const Plan& plan);

// A preliminary cluster, for checks before any machine is asked: with processors for so many stages
// on each machine with unknown devices.
[[nodiscard]] Cluster with_any_devices(Cluster cluster, int stages);

// kConfig if a machine's devices are still unknown.
[[nodiscard]] Result<void> check_settled(const Cluster& cluster);

// Asks the machines with "auto" devices in parallel, by a worker on each, and logs the result in
// one line. Errors as those of WorkerGroup. REQUIRES: check_reachable() for them.
[[nodiscard]] Result<void> settle_by_queries(Cluster& cluster,
                                             const std::filesystem::path& program,
                                             double start_timeout_s,
                                             const Log& log);

// The devices of one machine. With `details`, memory too. Errors as those of WorkerGroup.
[[nodiscard]] Result<DevicesFound> find_devices_of(const Machine& machine,
                                                   bool details,
                                                   const std::filesystem::path& program,
                                                   double start_timeout_s,
                                                   const Log& log);

}  // namespace motley
