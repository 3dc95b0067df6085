// The request to the machines of a run for the contents of their own run folders.
#pragma once

#include <set>
#include <string>

#include "cluster/replication/machine_stores.h"
#include "cluster/run/training_request.h"
#include "plan/cluster.h"

namespace motley {

// To these machines of the cluster. `launch`: as InventoryRequest::launch. The cluster and the
// machines must outlive the result.
[[nodiscard]] InventoryRequest inventory_request(const TrainingRequest& request,
                                                 const Cluster& cluster,
                                                 const std::set<std::string>& machines,
                                                 const std::string& launch);

}  // namespace motley
