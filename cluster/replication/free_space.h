// Checks that the disks of a run's machines have space for incoming files and for saves.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/replication/machine_stores.h"
#include "cluster/replication/plan_transfers.h"
#include "models/spec/model_spec.h"

namespace motley {

// kCorrupt, with the machine, the incoming and the free bytes, if the files from other machines
// exceed a folder's disk space. A file of which only some tensors are transferred counts in
// proportion.
[[nodiscard]] Result<void> require_free_space(const std::vector<StoreTransfers>& transfers,
                                              const StoreInventory& stores);

// The bytes that a save writes to each folder, for its ranks' parameters (parameters_by_store): the
// parameters and the optimizer's moments, as fp32.
[[nodiscard]] std::map<StoreId, std::uint64_t> save_bytes(
    const std::map<StoreId, std::set<std::string>>& parameters,
    const ModelSpec& model,
    int moments_per_parameter);

// A message for each folder without disk space for a save, which all machines then skip
// (checkpoint/save/space.h). `needed_bytes`: as save_bytes().
[[nodiscard]] std::vector<std::string> saves_without_space(
    const std::map<StoreId, std::uint64_t>& needed_bytes, const StoreInventory& stores);

}  // namespace motley
