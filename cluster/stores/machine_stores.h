// Where the machines of a run keep their parts of its checkpoints: in the launcher's folder where
// they see it, else each in one of its own (checkpoint/store/store_place.h).
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
#include "checkpoint/store/look.h"
#include "cluster/reach/peer_fault.h"
#include "plan/cluster.h"

namespace motley {

class WorkLine;

// Of one folder: its id, and "" of the launcher's.
using StoreId = std::string;

struct Store {
  StoreAnswer answer;
  std::vector<std::string> machines;  // that see it, of the cluster's; the launcher's may have none
};

struct Stores {
  std::map<std::string, std::filesystem::path>
      dirs;                        // by machine that was asked: where it sees its
  std::map<StoreId, Store> by_id;  // the launcher's among them
  std::string run;                 // as read_run_id(), of those with checkpoints; "" = none says

  // Of a machine that was asked; the launcher's for all others.
  [[nodiscard]] StoreId of(const std::string& machine) const;

  [[nodiscard]] const Store& at(const std::string& machine) const { return by_id.at(of(machine)); }

  // Those that see one of the folders.
  [[nodiscard]] std::set<std::string> machines() const;

  // The highest launch that was in a machine's own folder; 0 = none.
  [[nodiscard]] std::int64_t last_launch() const;
};

// Whom to ask, and about which run.
struct StoresRequest {
  const Cluster& cluster;
  const std::set<std::string>& machines;
  std::filesystem::path run_dir;  // the launcher's
  std::string launch;             // launch_text; "" = the folder is not taken, or not there
  std::filesystem::path program;  // motley-stage here
  double start_timeout_s = 60;
  IfAbsent if_absent = IfAbsent::kMake;
  WorkLine* line = nullptr;  // where a person sees how far they are; nullptr = nowhere
  std::function<void(const PeerFault& fault)> on_fault;  // as in WorkerGroupOptions
};

// Absolute and normal, without a '/' at its end.
[[nodiscard]] std::filesystem::path whole_path(const std::filesystem::path& path);

// Whether one of the machines could have a folder of its own.
[[nodiscard]] bool may_have_own_folder(const Machine& machine);
[[nodiscard]] bool may_have_own_folders(const Cluster& cluster,
                                        const std::set<std::string>& machines);

// As LauncherFolder::own_dir. REQUIRES: run_dir is absolute and normal.
[[nodiscard]] std::string own_dir_of(const Machine& machine,
                                     const std::filesystem::path& run_dir,
                                     const std::string& home);

// Asks the machines that may have their own, all at once, by a worker on each, and looks into the
// launcher's. Errors as those of WorkerGroup; kPeer where another launch is at work in a folder,
// kConfig where one holds checkpoints of another run than the launcher's or another machine's.
// REQUIRES: check_reachable() for them; the launcher's folder is this launch's, where there is one.
[[nodiscard]] Result<Stores> inventory_stores(const StoresRequest& request,
                                              const StoreQuestion& question,
                                              const Log& log);

}  // namespace motley
