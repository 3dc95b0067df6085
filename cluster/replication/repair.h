// Repair of a distributed checkpoint: which files are missing in the launcher's folder, and which
// copies are missing or damaged in the others. Pure functions.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "cluster/replication/machine_stores.h"
#include "cluster/replication/restore_point.h"
#include "plan/cluster.h"

namespace motley {

// The folders that contain a file of a checkpoint.
struct FileLocations {
  std::string file;
  std::vector<StoreId> intact;
  std::vector<StoreId> damaged;
};

// The locations of these files, in their order. REQUIRES: `stores` answered a question about them.
[[nodiscard]] std::vector<FileLocations> file_locations(const std::vector<WrittenFile>& files,
                                                        const StoreInventory& stores);

// The files that are missing or damaged in the launcher's folder, under its id; empty if none is
// missing.
[[nodiscard]] std::map<StoreId, std::set<std::string>> missing_here(const RestorePoint& point);

// By folder, the files to deliver to it, so that each file of the checkpoint is in the folder of
// the machine that wrote it, if that machine was asked, and in `copies` others: existing copies
// first, then in the order of plan_copies. Damaged files are replaced wherever they are.
[[nodiscard]] std::map<StoreId, std::set<std::string>> missing_copies(const RestorePoint& point,
                                                                      const StoreInventory& stores,
                                                                      const Cluster& cluster,
                                                                      int copies);

// The folders with files of the checkpoint whose metadata is missing or differs. REQUIRES: `stores`
// answered a question about the checkpoint.
[[nodiscard]] std::set<StoreId> without_metadata(const RestorePoint& point,
                                                 const StoreInventory& stores);

}  // namespace motley
