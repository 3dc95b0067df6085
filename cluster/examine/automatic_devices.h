// What "auto" among a machine's devices becomes, before anything is measured or planned: no plan
// and no profile holds it.
//
// All accelerators that the machine has, and its processor where it has none. Beside an accelerator
// the processor is left out: it feeds them and encodes what they send, is tens of times slower, and
// would be measured each time to be found of no use. Who wants both names both.
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

// Of the devices that are there, by name, those that so many "auto" stand for: the accelerators,
// or as many processes on the processor where there are fewer of them.
[[nodiscard]] std::vector<std::string> automatic_devices(const std::vector<std::string>& there,
                                                         std::size_t at_least);
// The same of what a machine was found to have, without what nothing would run on.
[[nodiscard]] std::vector<std::string> automatic_devices(const DevicesFound& found,
                                                         std::size_t at_least);

// Machines that a profile knows have the accelerators that it names, else their processor.
void settle_by_profile(Cluster& cluster, const Profile& profile);
// The machines of a plan those that it uses.
void settle_by_plan(Cluster& cluster, const Plan& plan);

// The cluster as it may turn out to be, for checks before any machine is asked: with devices for so
// many stages wherever they are not known yet.
[[nodiscard]] Cluster with_any_devices(Cluster cluster, int stages);

// kConfig where a machine's devices are not known and nobody is going to ask it.
[[nodiscard]] Result<void> check_settled(const Cluster& cluster);

// Asks the other machines, all at once, by a worker on each, and says in one line what they have.
// Errors as those of WorkerGroup. REQUIRES: check_reachable() for them.
[[nodiscard]] Result<void> settle_by_asking(Cluster& cluster,
                                            const std::filesystem::path& program,
                                            double start_timeout_s,
                                            const Log& log);

// What one machine has. With `details`, memory too. Errors as those of WorkerGroup.
[[nodiscard]] Result<DevicesFound> find_devices_of(const Machine& machine,
                                                   bool details,
                                                   const std::filesystem::path& program,
                                                   double start_timeout_s,
                                                   const Log& log);

}  // namespace motley
