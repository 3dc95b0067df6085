#include "cluster/stores/repair.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "cluster/stores/copy_plan.h"

namespace motley {
namespace {

bool lies_in(const std::vector<StoreId>& holders, const StoreId& store) {
  return std::ranges::count(holders, store) > 0;
}

// Folders that some machine can write into.
std::vector<StoreId> usable_stores(const Stores& stores) {
  std::vector<StoreId> ids;
  for (const auto& [id, store] : stores.by_id) {
    if (!store.machines.empty()) ids.push_back(id);
  }
  return ids;
}

}  // namespace

std::vector<FileLocations> file_locations(const std::vector<WrittenFile>& files,
                                          const Stores& stores) {
  std::vector<FileLocations> all;
  for (const WrittenFile& file : files) {
    FileLocations& found = all.emplace_back(FileLocations{.file = file.name});
    for (const auto& [id, store] : stores.by_id) {
      if (std::ranges::count(store.answer.whole, file.name) > 0) found.whole.push_back(id);
      if (std::ranges::count(store.answer.damaged, file.name) > 0) found.damaged.push_back(id);
    }
  }
  return all;
}

std::map<StoreId, std::set<std::string>> missing_here(const RestorePoint& point) {
  std::map<StoreId, std::set<std::string>> missing;
  for (const auto& [file, holders] : point.holders) {
    if (!lies_in(holders, StoreId())) missing[StoreId()].insert(file);
  }
  return missing;
}

std::map<StoreId, std::set<std::string>> missing_copies(const RestorePoint& point,
                                                        const Stores& stores,
                                                        const Cluster& cluster,
                                                        int copies) {
  std::map<StoreId, std::set<std::string>> missing;
  const std::vector<StoreId> usable = usable_stores(stores);
  const auto others = plan_copies(usable, stores, cluster, static_cast<int>(usable.size()));
  for (const WrittenFile& file : tensor_files(point.texts.manifest)) {
    const std::vector<StoreId>& holders = point.holders.at(file.name);
    const bool answers = std::ranges::any_of(stores.by_id, [&](const auto& store) {
      return std::ranges::count(store.second.machines, file.machine) > 0;
    });
    // In place of a machine that is not asked, whoever has a copy.
    const StoreId home = answers ? stores.of(file.machine) : holders.front();
    std::size_t wanted = static_cast<std::size_t>(copies) + 1;
    std::vector<StoreId> places = {home};
    // What is damaged is replaced, wherever it lies; then copies that are there count.
    for (const StoreId& store : usable) {
      const auto& damaged = stores.by_id.at(store).answer.damaged;
      const bool is_damaged = std::ranges::count(damaged, file.name) > 0;
      if (is_damaged && !lies_in(places, store)) places.push_back(store);
    }
    for (const StoreId& holder : holders) {
      if (places.size() < wanted && !lies_in(places, holder)) places.push_back(holder);
    }
    for (const StoreId& other : others.at(home)) {
      if (places.size() < wanted && !lies_in(places, other)) places.push_back(other);
    }
    for (const StoreId& place : places) {
      if (!lies_in(holders, place)) missing[place].insert(file.name);
    }
  }
  return missing;
}

std::set<StoreId> without_texts(const RestorePoint& point, const Stores& told) {
  const auto holds_any = [&](const StoreId& id) {
    return std::ranges::any_of(point.holders,
                               [&](const auto& file) { return lies_in(file.second, id); });
  };
  std::set<StoreId> without;
  for (const StoreId& id : usable_stores(told)) {
    const std::optional<CheckpointMetadata>& texts = told.by_id.at(id).answer.texts;
    const bool has_them = texts && texts->files == point.texts.files;
    if (!has_them && holds_any(id)) without.insert(id);
  }
  return without;
}

}  // namespace motley
