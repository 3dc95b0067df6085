// Simulated devices in cluster files: the keys [machine.virtual] and device_model, and checks of
// where such machines are allowed. Format: docs/formats/cluster.md.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "plan/cluster.h"
#include "plan/toml_table.h"

namespace motley {

// The speed of the machine's simulated devices in the file; nullopt also if their model provides it
// (plan/cluster/virtual_numbers.h). Sets the machine's model, and its devices and memory unless the
// file does. kConfig also if a machine with other devices has such a key. REQUIRES: the machine's
// other keys were read.
[[nodiscard]] Result<std::optional<VirtualSpeed>> read_virtual_speed(TomlTable& table,
                                                                     Machine& machine);

// kConfig if a cluster has both real and simulated machines: the output of a simulated device is
// noise, so nothing real can be trained on it. `tables` is [MachineId], like `machines`.
[[nodiscard]] Result<void> check_all_virtual(const std::vector<Machine>& machines,
                                             const std::vector<TomlTable>& tables);

// Removes the network settings of simulated machines.
void remove_from_network(std::vector<Machine>& machines);

}  // namespace motley
