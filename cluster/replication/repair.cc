#include "cluster/replication/repair.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "cluster/replication/copy_plan.h"

namespace motley {
namespace {

bool has_store(const std::vector<StoreId>& stores, const StoreId& store) {
  return std::ranges::count(stores, store) > 0;
}

// Folders that some machine can write to.
std::vector<StoreId> usable_stores(const StoreInventory& stores) {
  std::vector<StoreId> ids;
  for (const auto& [id, store] : stores.by_id) {
    if (!store.machines.empty()) ids.push_back(id);
  }
  return ids;
}

}  // namespace

std::vector<FileLocations> file_locations(const std::vector<WrittenFile>& files,
                                          const StoreInventory& stores) {
  std::vector<FileLocations> all;
  for (const WrittenFile& file : files) {
    FileLocations& found = all.emplace_back(FileLocations{.file = file.name});
    for (const auto& [id, store] : stores.by_id) {
      if (std::ranges::count(store.contents.intact, file.name) > 0) found.intact.push_back(id);
      if (std::ranges::count(store.contents.damaged, file.name) > 0) found.damaged.push_back(id);
    }
  }
  return all;
}

std::map<StoreId, std::set<std::string>> missing_here(const RestorePoint& point) {
  std::map<StoreId, std::set<std::string>> missing;
  for (const auto& [file, locations] : point.locations) {
    if (!has_store(locations, StoreId())) missing[StoreId()].insert(file);
  }
  return missing;
}

std::map<StoreId, std::set<std::string>> missing_copies(const RestorePoint& point,
                                                        const StoreInventory& stores,
                                                        const Cluster& cluster,
                                                        int copies) {
  std::map<StoreId, std::set<std::string>> missing;
  const std::vector<StoreId> usable = usable_stores(stores);
  const auto others = plan_copies(usable, stores, cluster, static_cast<int>(usable.size()));
  for (const WrittenFile& file : tensor_files(point.step_metadata.manifest)) {
    const std::vector<StoreId>& locations = point.locations.at(file.name);
    const bool has_answered = std::ranges::any_of(stores.by_id, [&](const auto& store) {
      return std::ranges::count(store.second.machines, file.machine) > 0;
    });
    // If the machine that wrote the file was not asked, the first folder with a copy takes its
    // place.
    const StoreId home = has_answered ? stores.of(file.machine) : locations.front();
    const std::size_t target_count = static_cast<std::size_t>(copies) + 1;
    std::vector<StoreId> targets = {home};
    // Damaged files are replaced wherever they are; then existing copies count, then new ones
    // follow.
    for (const StoreId& store : usable) {
      const auto& damaged = stores.by_id.at(store).contents.damaged;
      const bool is_damaged = std::ranges::count(damaged, file.name) > 0;
      if (is_damaged && !has_store(targets, store)) targets.push_back(store);
    }
    for (const StoreId& holder : locations) {
      if (targets.size() < target_count && !has_store(targets, holder)) targets.push_back(holder);
    }
    for (const StoreId& other : others.at(home)) {
      if (targets.size() < target_count && !has_store(targets, other)) targets.push_back(other);
    }
    for (const StoreId& target : targets) {
      if (!has_store(locations, target)) missing[target].insert(file.name);
    }
  }
  return missing;
}

std::set<StoreId> without_metadata(const RestorePoint& point, const StoreInventory& stores) {
  const auto holds_any = [&](const StoreId& id) {
    return std::ranges::any_of(point.locations,
                               [&](const auto& file) { return has_store(file.second, id); });
  };
  std::set<StoreId> without;
  for (const StoreId& id : usable_stores(stores)) {
    const std::optional<CheckpointMetadata>& metadata = stores.by_id.at(id).contents.step_metadata;
    const bool is_complete = metadata && metadata->files == point.step_metadata.files;
    if (!is_complete && holds_any(id)) without.insert(id);
  }
  return without;
}

}  // namespace motley
