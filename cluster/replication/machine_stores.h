// The folders in which the machines of a run store their parts of its checkpoints: the launcher's
// folder if they see it, else a folder of their own (checkpoint/replication/store_location.h).
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "checkpoint/replication/inventory.h"
#include "cluster/reach/peer_fault.h"
#include "plan/cluster.h"

namespace motley {

class ProgressLine;

// A folder's id; "" for the launcher's.
using StoreId = std::string;

struct MachineStore {
  StoreContents contents;
  // Of the cluster, that see it; may be empty for the launcher's.
  std::vector<std::string> machines;
};

struct StoreInventory {
  // By queried machine: the path of its folder there.
  std::map<std::string, std::filesystem::path> dirs;
  std::map<StoreId, MachineStore> by_id;  // including the launcher's
  std::string run;  // read_run_id() of the folders with checkpoints; "" = unknown

  // The folder of a machine that was queried; the launcher's for all others.
  [[nodiscard]] StoreId of(const std::string& machine) const;

  [[nodiscard]] const MachineStore& at(const std::string& machine) const {
    return by_id.at(of(machine));
  }

  // The machines that see one of the folders.
  [[nodiscard]] std::set<std::string> machines() const;

  // The highest launch number recorded in a machine's own folder; 0 = none.
  [[nodiscard]] std::int64_t last_launch() const;
};

// The machines to query, and the run.
struct InventoryRequest {
  const Cluster& cluster;
  const std::set<std::string>& machines;
  std::filesystem::path run_dir;  // the launcher's
  std::string launch;             // launch_text; "" = the folder is not locked, or does not exist
  std::filesystem::path program;  // motley-stage here
  double start_timeout_s = 60;
  IfAbsent if_absent = IfAbsent::kMake;
  ProgressLine* line = nullptr;                          // for progress; nullptr = none
  std::function<void(const PeerFault& fault)> on_fault;  // as in WorkerGroupOptions
};

// Absolute and normal, without a trailing '/'.
[[nodiscard]] std::filesystem::path absolute_normal_path(const std::filesystem::path& path);

// Whether the machine (one of the machines) could have a folder of its own.
[[nodiscard]] bool may_have_own_folder(const Machine& machine);
[[nodiscard]] bool may_have_own_folders(const Cluster& cluster,
                                        const std::set<std::string>& machines);

// As LauncherFolder::own_dir. REQUIRES: run_dir is absolute and normal.
[[nodiscard]] std::string own_dir_of(const Machine& machine,
                                     const std::filesystem::path& run_dir,
                                     const std::string& home);

// Queries the machines that may have their own folder in parallel, by a worker on each, and reads
// the launcher's. Errors as those of WorkerGroup; kPeer if another launch uses a folder, kConfig if
// one contains checkpoints of another run than the launcher's or another machine's.
// REQUIRES: check_reachable() for them; the launcher's folder, if it exists, is locked by this
// launch.
[[nodiscard]] Result<StoreInventory> inventory_stores(const InventoryRequest& request,
                                                      const StoreQuery& store_query,
                                                      const Log& log);

}  // namespace motley
