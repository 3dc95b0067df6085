// What a cluster file says of virtual devices, [machine.virtual] and device_model, and where
// machines that have them may stand. Format: docs/formats/cluster.md.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "plan/cluster.h"
#include "plan/toml_table.h"

namespace motley {

// How fast the machine's devices are, where they are virtual: the table [machine.virtual], which
// stands nowhere else, goes before the model. Sets the machine's model, and where the file leaves
// them out its devices and memory. kConfig, also where a machine with other devices says it.
// REQUIRES: the machine's other keys were read.
[[nodiscard]] Result<std::optional<VirtualSpeed>> read_virtual_speed(TomlTable& table,
                                                                     Machine& machine);

// kConfig where real machines stand beside virtual ones: what a virtual device hands on is noise,
// and nothing real can be trained on it. `tables` is [MachineId], as `machines`.
[[nodiscard]] Result<void> check_all_virtual(const std::vector<Machine>& machines,
                                             const std::vector<TomlTable>& tables);

// Imagined machines are nowhere, whatever their entries say.
void take_out_of_the_network(std::vector<Machine>& machines);

}  // namespace motley
