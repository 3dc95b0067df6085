#include "tests/cluster/own_folders/played_machines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace motley::testing {

namespace fs = std::filesystem;

std::vector<std::string> Layout::machines() const {
  std::vector<std::string> machines = computing;
  if (std::ranges::count(machines, kDesk) == 0) machines.insert(machines.begin(), kDesk);
  return machines;
}

ModelSpec three_layers() {
  ModelSpec model{.family = "gpt2"};
  for (int i = 0; i < 3; ++i) {
    LayerSpec layer{.name = fmt::format("layer{}", i)};
    layer.parameters.push_back({.name = fmt::format("w{}", i), .shape = {20, 16}});
    model.layers.push_back(std::move(layer));
  }
  return model;
}

Plan plan_of(const Layout& layout) {
  Plan plan;
  const int ranks = static_cast<int>(layout.computing.size());
  const int layers = static_cast<int>(three_layers().layers.size());
  for (int rank = 0; rank < ranks; ++rank) {
    plan.ranks.push_back(
        {.machine = layout.computing[static_cast<std::size_t>(rank)], .device = "cpu"});
    plan.chunks.push_back({.first_layer = rank,
                           .layer_count = rank + 1 < ranks ? 1 : layers - rank,
                           .replicas = {{Rank{rank}, 1}}});
  }
  return plan;
}

PlayedMachines::PlayedMachines(Layout layout, std::map<std::string, fs::path> disks)
    : layout_(std::move(layout)), disks_(std::move(disks)) {
  for (const std::string& name : layout_.machines()) {
    Machine machine{.name = name};
    if (name != kDesk) machine.runs_dir = run_dir(name).parent_path().string();
    cluster_.machines.push_back(std::move(machine));
  }
}

fs::path PlayedMachines::run_dir(const std::string& machine) const {
  return disks_.at(machine) / "runs" / "gpt";
}

Result<StoreInventory> PlayedMachines::ask(const std::string& launch,
                                           const StoreQuery& store_query,
                                           IfAbsent if_absent) const {
  StoreInventory stores;
  MachineStore& mine = stores.by_id[StoreId()];
  MOTLEY_ASSIGN(mine.contents, take_inventory({.dir = run_dir(kDesk)}, store_query, nullptr));
  mine.machines = {kDesk};
  stores.run = mine.contents.run;
  for (const Machine& machine : cluster_.machines) {
    if (!may_have_own_folder(machine)) continue;
    const std::string own = own_dir_of(machine, run_dir(kDesk), "");
    MOTLEY_ASSIGN(const StoreLocation location, find_store({"", own, launch}, if_absent));
    MOTLEY_ASSIGN(StoreContents contents, take_inventory(location, store_query, nullptr));
    if (!contents.lock_holder.empty()) {
      return Error{ErrorCode::kPeer, fmt::format("{} is held by {}", own, contents.lock_holder), "",
                   ""};
    }
    if (stores.run.empty() && !contents.steps.empty()) stores.run = contents.run;
    stores.dirs[machine.name] = location.dir;
    // A folder that does not exist has no id.
    stores.by_id[location.id.empty() ? "on " + machine.name : location.id] = {std::move(contents),
                                                                              {machine.name}};
  }
  return stores;
}

}  // namespace motley::testing
