// What goes where before a training goes on from a checkpoint that lies scattered. Pure functions.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/store/texts.h"
#include "cluster/stores/machine_stores.h"
#include "cluster/stores/restore_point.h"
#include "models/spec/model_spec.h"
#include "plan/cluster.h"
#include "plan/plan.h"
#include "protocol/move_message.h"

namespace motley {

// The parameters that the ranks of a plan hold, by the folder that they read from.
[[nodiscard]] std::map<StoreId, std::set<std::string>> parameters_by_store(const Plan& plan,
                                                                           const ModelSpec& model,
                                                                           const Stores& stores);

// One worker's part: it works in `store`, on `machine`.
struct StoreMoves {
  StoreId store;
  std::string machine;
  MoveOrder order;
};

// A worker for each folder that reads or gives something, and that not all of the checkpoint lies
// in. Each gets what it lacks from the holder with the fastest link to it, and of equal ones from
// the one that gives least so far. Files that lie whole where they are needed are taken from there.
// REQUIRES: each file of the restore point has a holder.
[[nodiscard]] std::vector<StoreMoves> plan_moves(
    const RestorePoint& point,
    const std::map<StoreId, std::set<std::string>>& parameters,
    const Stores& stores,
    const Cluster& cluster);

// A worker for each of these folders, whose part of the checkpoint gets the texts and the whole
// files, if any, and for each that gives one. Who gives is chosen as above. REQUIRES: each of them
// has a holder.
[[nodiscard]] std::vector<StoreMoves> plan_deliveries(
    const RestorePoint& point,
    const std::map<StoreId, std::set<std::string>>& files,
    const Stores& stores,
    const Cluster& cluster);

}  // namespace motley
