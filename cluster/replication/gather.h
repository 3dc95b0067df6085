// Mending a checkpoint that is distributed over several machines' folders: finds the files of a
// checkpoint on the responding machines, and delivers those that are missing somewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/log.h"
#include "base/process/progress_line.h"
#include "base/result.h"
#include "checkpoint/lock/run_lock.h"
#include "cluster/replication/machine_stores.h"
#include "cluster/replication/restore_point.h"
#include "plan/cluster.h"
#include "run_config/config.h"

namespace motley {

// A run, its responding machines, and their files of one checkpoint.
struct DistributedCheckpoint {
  Cluster cluster;
  std::set<std::string> machines;
  std::filesystem::path program;
  std::filesystem::path run;
  std::string launch;
  ProgressLine* line = nullptr;
  Config config = {};  // of the run
  StoreInventory stores = {};
  RestorePoint point = {};
};

// For a question to these machines. REQUIRES: `found` outlives the result.
[[nodiscard]] InventoryRequest request_of(const DistributedCheckpoint& found);

// The files to deliver to each folder; the checkpoint's metadata is always delivered.
using Deliveries = std::map<StoreId, std::set<std::string>>;

struct DeliveredFiles {
  std::size_t count = 0;
  std::uint64_t bytes = 0;
};

// `step`: nothing = the newest usable checkpoint. `program`: motley-stage here. kConfig if no
// machine has the checkpoint; other errors as of find_restore_point(). REQUIRES: `lock` is of the
// folder `run`; `line` lives as long as the result.
[[nodiscard]] Result<DistributedCheckpoint> find_checkpoint(const Cluster& cluster,
                                                            const std::set<std::string>& machines,
                                                            const std::filesystem::path& program,
                                                            const std::filesystem::path& run,
                                                            std::optional<std::int64_t> step,
                                                            RunLock& lock,
                                                            ProgressLine& line,
                                                            const Log& log);

// Logs one line for each folder. Errors as of transfer_files().
[[nodiscard]] Result<DeliveredFiles> deliver(const DistributedCheckpoint& found,
                                             const Deliveries& deliveries,
                                             const Log& log);

// What the launcher's folder lacks. kConfig if this machine is not in the cluster.
[[nodiscard]] Result<Deliveries> missing_in_launcher_folder(const DistributedCheckpoint& found);

}  // namespace motley
