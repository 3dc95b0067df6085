// Plans the file transfers before a training resumes from a distributed checkpoint. Pure functions.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/replication/checkpoint_metadata.h"
#include "cluster/replication/machine_stores.h"
#include "cluster/replication/restore_point.h"
#include "models/spec/model_spec.h"
#include "plan/cluster.h"
#include "plan/plan.h"
#include "protocol/transfer_message.h"

namespace motley {

// The parameters of a plan's ranks, by the folder from which the ranks read.
[[nodiscard]] std::map<StoreId, std::set<std::string>> parameters_by_store(
    const Plan& plan, const ModelSpec& model, const StoreInventory& stores);

// The transfers of one worker, which works in `store` on `machine`.
struct StoreTransfers {
  StoreId store;
  std::string machine;
  TransferOrder order;
};

// A worker for each folder that reads or sends part of the checkpoint. A launcher's folder that
// contains all of it is read in place. Each folder receives missing files from the folder with the
// fastest link; among equal links, from the folder that sends the least so far. Files that are
// intact in the folder itself are read there. REQUIRES: each file of the restore point is
// in some folder.
[[nodiscard]] std::vector<StoreTransfers> plan_transfers(
    const RestorePoint& point,
    const std::map<StoreId, std::set<std::string>>& parameters,
    const StoreInventory& stores,
    const Cluster& cluster);

// A worker for each of the folders in `files`, which receives the metadata and its whole files, if
// any, and for each folder that sends one. Senders are chosen as above. REQUIRES: each of the files
// is in some folder.
[[nodiscard]] std::vector<StoreTransfers> plan_deliveries(
    const RestorePoint& point,
    const std::map<StoreId, std::set<std::string>>& files,
    const StoreInventory& stores,
    const Cluster& cluster);

}  // namespace motley
