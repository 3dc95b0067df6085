// Checks that the disks of a run's machines have space for incoming files and for saves.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/stores/machine_stores.h"
#include "cluster/stores/plan_moves.h"
#include "models/spec/model_spec.h"

namespace motley {

// kCorrupt, with the machine, the incoming and the free bytes, if the files from other machines
// exceed a folder's disk space. A file of which only some tensors are transferred counts in
// proportion.
[[nodiscard]] Result<void> require_room(const std::vector<StoreMoves>& moves, const Stores& stores);

// The bytes that a save writes to each folder, for its ranks' parameters (parameters_by_store): the
// parameters and the optimizer's moments, as fp32.
[[nodiscard]] std::map<StoreId, std::uint64_t> save_bytes(
    const std::map<StoreId, std::set<std::string>>& parameters,
    const ModelSpec& model,
    int moments_per_parameter);

// A message for each folder without disk space for a save, which all machines then skip
// (checkpoint/save/space.h). `needed_bytes`: as save_bytes().
[[nodiscard]] std::vector<std::string> saves_without_room(
    const std::map<StoreId, std::uint64_t>& needed_bytes, const Stores& stores);

}  // namespace motley
