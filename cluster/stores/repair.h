// What a checkpoint in several folders lacks: in one of them, or of what each should have. Pure
// functions.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "cluster/stores/machine_stores.h"
#include "cluster/stores/restore_point.h"
#include "plan/cluster.h"

namespace motley {

// Where a file of a checkpoint lies.
struct FileLocations {
  std::string file;
  std::vector<StoreId> whole;
  std::vector<StoreId> damaged;
};

// Of these files, in their order. `stores`: all were asked for them.
[[nodiscard]] std::vector<FileLocations> file_locations(const std::vector<WrittenFile>& files,
                                                        const Stores& stores);

// The files that do not lie whole in the launcher's folder, under its id.
[[nodiscard]] std::map<StoreId, std::set<std::string>> missing_here(const RestorePoint& point);

// The files that the folders should get so that each lies where it was written, if that machine is
// among those asked, and in so many others: those that follow it as plan_copies has it. And those
// that are damaged where they lie.
[[nodiscard]] std::map<StoreId, std::set<std::string>> missing_copies(const RestorePoint& point,
                                                                      const Stores& stores,
                                                                      const Cluster& cluster,
                                                                      int copies);

// The folders that have something of the checkpoint and not its texts, or damaged ones. `told`: all
// were asked for them.
[[nodiscard]] std::set<StoreId> without_texts(const RestorePoint& point, const Stores& told);

}  // namespace motley
