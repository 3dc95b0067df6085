#include "cluster/supervisor/hand_over.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/process/progress_line.h"
#include "cluster/launch/workers.h"
#include "cluster/replication/gather.h"

namespace motley {
namespace {

bool has_staying(const MachineStore& store, const std::set<std::string>& leaving) {
  return std::ranges::any_of(
      store.machines, [&](const std::string& machine) { return !leaving.contains(machine); });
}

// The folder that takes the files; nullopt: no machine stays.
std::optional<StoreId> receiving_folder(const StoreInventory& stores,
                                        const std::set<std::string>& leaving) {
  const auto launchers = stores.by_id.find(StoreId());
  if (launchers != stores.by_id.end() && has_staying(launchers->second, leaving)) return StoreId();
  for (const auto& [id, store] : stores.by_id) {
    if (has_staying(store, leaving)) return id;
  }
  return {};
}

}  // namespace

Result<void> hand_over(const std::set<std::string>& leaving,
                       const ReadyRun& run,
                       const Cluster& cluster,
                       const std::filesystem::path& program,
                       RunLock& lock,
                       const Log& log) {
  const std::set<std::string> machines = machines_in_use(run.planned.plan);
  if (!may_have_own_folders(cluster, machines)) return {};
  ProgressLine line("", nullptr);
  MOTLEY_ASSIGN(const DistributedCheckpoint found,
                find_checkpoint(cluster, machines, program, absolute_normal_path(run.folder.dir()),
                                {}, lock, line, log));
  const auto receiver = receiving_folder(found.stores, leaving);
  if (!receiver) return {};
  Deliveries deliveries;
  for (const auto& [file, locations] : found.point.locations) {
    const bool stays = std::ranges::any_of(locations, [&](const StoreId& store) {
      return has_staying(found.stores.by_id.at(store), leaving);
    });
    if (!stays) deliveries[*receiver].insert(file);
  }
  if (deliveries.empty()) return {};
  MOTLEY_TRY(deliver(found, deliveries, log));
  return {};
}

}  // namespace motley
