// Whether the disks of a run's machines have room for what is brought there, and for its saves.
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

// kCorrupt, with the machine, the bytes that come and those that are free, where what comes from
// other machines does not fit a folder's disk. Of a file of which only some tensors come their
// share of its bytes counts.
[[nodiscard]] Result<void> require_room(const std::vector<StoreMoves>& moves, const Stores& stores);

// What a save writes into each folder, of the parameters that its ranks hold (parameters_by_store):
// they and what the optimizer keeps of them, as fp32.
[[nodiscard]] std::map<StoreId, std::uint64_t> save_bytes(
    const std::map<StoreId, std::set<std::string>>& parameters,
    const ModelSpec& model,
    int moments_per_parameter);

// A line for each folder whose disk has no room for a save, which is then left out on all machines
// (checkpoint/save/space.h). `needed_bytes`: as save_bytes().
[[nodiscard]] std::vector<std::string> saves_without_room(
    const std::map<StoreId, std::uint64_t>& needed_bytes, const Stores& stores);

}  // namespace motley
