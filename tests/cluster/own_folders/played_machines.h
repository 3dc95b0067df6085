// The machines of a run without their processes: each has a folder that represents its disk.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/replication/inventory.h"
#include "checkpoint/replication/store_location.h"
#include "cluster/replication/machine_stores.h"
#include "models/spec/model_spec.h"
#include "plan/cluster.h"
#include "plan/plan.h"

namespace motley::testing {

inline constexpr const char* kDesk = "desk";  // the launcher's machine

// The machines that compute, one rank each, and the number of retained checkpoints.
struct Layout {
  std::string name;
  std::vector<std::string> computing;  // [Rank]
  int keep = 2;

  [[nodiscard]] std::vector<std::string> machines() const;  // including kDesk

  // Copies of a checkpoint's parts between machines.
  [[nodiscard]] std::size_t copies() const { return computing.size() > 1 ? computing.size() : 0; }
};

// Three layers of one parameter each, and a plan for them.
[[nodiscard]] ModelSpec three_layers();
[[nodiscard]] Plan plan_of(const Layout& layout);

class PlayedMachines {
 public:
  // `disks`: by machine, an empty folder or one with an earlier state.
  PlayedMachines(Layout layout, std::map<std::string, std::filesystem::path> disks);

  [[nodiscard]] const Layout& layout() const { return layout_; }

  [[nodiscard]] const Cluster& cluster() const { return cluster_; }

  [[nodiscard]] std::filesystem::path run_dir(const std::string& machine) const;

  // The result of inventory_stores(), which uses a worker on each machine.
  [[nodiscard]] Result<StoreInventory> ask(const std::string& launch,
                                           const StoreQuery& store_query,
                                           IfAbsent if_absent) const;

 private:
  Layout layout_;
  std::map<std::string, std::filesystem::path> disks_;
  Cluster cluster_;
};

}  // namespace motley::testing
