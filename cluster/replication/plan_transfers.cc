#include "cluster/replication/plan_transfers.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "checkpoint/replication/restored_view.h"

namespace motley {
namespace {

bool holds(const std::vector<StoreId>& ids, const StoreId& id) {
  return std::ranges::count(ids, id) > 0;
}

// A file that a folder lacks, and its source.
struct Transfer {
  StoreId from;
  StoreId to;
  RequiredFile need;
};

std::uint64_t bytes_of(const RequiredFile& need) {
  // The sizes of tensors are in the file; their share by count is accurate enough for balancing.
  const std::size_t all = std::max<std::size_t>(1, need.file.tensor_hashes.size());
  return need.file.bytes / all * need.tensors.size();
}

class TransferPlanner {
 public:
  TransferPlanner(const RestorePoint& point, const StoreInventory& stores, const Cluster& cluster)
      : point_(point), stores_(stores), cluster_(cluster) {}

  void add(const StoreId& store, const std::set<std::string>& parameters) {
    std::vector<RequiredFile>& linked = linked_[store];
    for (RequiredFile& need : required_files(point_.step_metadata.manifest, parameters)) {
      const std::vector<StoreId>& locations = point_.locations.at(need.file.name);
      if (holds(locations, store)) {
        linked.push_back(std::move(need));
      } else {
        transfer(store, std::move(need));
      }
    }
  }

  void deliver(const StoreId& store, const std::set<std::string>& files) {
    delivered_.insert(store);
    for (WrittenFile& file : tensor_files(point_.step_metadata.manifest)) {
      if (!files.contains(file.name)) continue;
      RequiredFile need{std::move(file), {}};
      for (const auto& [tensor, hash] : need.file.tensor_hashes) need.tensors.insert(tensor);
      transfer(store, std::move(need));
    }
  }

  std::vector<StoreTransfers> transfers() {
    std::vector<StoreTransfers> transfers;
    for (const StoreId& store : involved()) {
      transfers.push_back({store, stores_.by_id.at(store).machines.front(), {}});
    }
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      transfers[i].order =
          order_of(transfers[i].store, Rank{static_cast<std::int32_t>(i)}, transfers);
    }
    return transfers;
  }

 private:
  void transfer(const StoreId& to, RequiredFile need) {
    const StoreId from = best_of(point_.locations.at(need.file.name), to);
    given_bytes_[from] += bytes_of(need);
    transfers_.push_back({from, to, std::move(need)});
  }

  [[nodiscard]] StoreId best_of(const std::vector<StoreId>& locations, const StoreId& to) const {
    MOTLEY_CHECK(!locations.empty(), "a file in no folder");
    return *std::ranges::min_element(locations, {}, [&](const StoreId& from) {
      const LinkSpeed link = cluster_.link(stores_.by_id.at(from).machines.front(),
                                           stores_.by_id.at(to).machines.front());
      const auto given = given_bytes_.find(from);
      return std::tuple(-link.bandwidth_bytes_per_s,
                        given == given_bytes_.end() ? 0 : given->second, from);
    });
  }

  // The folders with a view to create, or something to receive or send.
  [[nodiscard]] std::set<StoreId> involved() const {
    std::set<StoreId> ids = delivered_;
    for (const auto& [store, linked] : linked_) ids.insert(store);
    for (const Transfer& transfer : transfers_) ids.insert({transfer.from, transfer.to});
    return ids;
  }

  [[nodiscard]] TransferOrder order_of(const StoreId& self,
                                       Rank rank,
                                       const std::vector<StoreTransfers>& all) const {
    const auto rank_of = [&](const StoreId& id) {
      const auto found = std::ranges::find(all, id, &StoreTransfers::store);
      return Rank{static_cast<std::int32_t>(found - all.begin())};
    };
    TransferOrder order{.self = rank, .rank_count = static_cast<int>(all.size())};
    order.manifest = point_.step_metadata.manifest;
    order.manifest.files.clear();
    order.makes_restored_view = linked_.contains(self);
    if (delivered_.contains(self)) order.step_metadata = point_.step_metadata;
    if (const auto linked = linked_.find(self); linked != linked_.end()) {
      for (const RequiredFile& need : linked->second) {
        order.linked.push_back(need.file.name);
        order.manifest.files.push_back(need.file);
      }
    }
    std::map<std::pair<StoreId, StoreId>, std::int32_t> streams;
    for (const Transfer& transfer : transfers_) {
      const std::int32_t stream = streams[{transfer.from, transfer.to}]++;
      if (transfer.from != self && transfer.to != self) continue;
      const bool is_mine = transfer.from == self;
      TransferItem move{.stream = stream,
                        .peer = rank_of(is_mine ? transfer.to : transfer.from),
                        .file = transfer.need.file.name};
      if (!transfer.need.is_all()) {
        move.tensors.assign(transfer.need.tensors.begin(), transfer.need.tensors.end());
      }
      (is_mine ? order.outgoing : order.incoming).push_back(std::move(move));
      add_once(order.manifest.files, transfer.need.file);
    }
    return order;
  }

  static void add_once(std::vector<WrittenFile>& files, const WrittenFile& file) {
    if (std::ranges::count(files, file.name, &WrittenFile::name) == 0) files.push_back(file);
  }

  const RestorePoint& point_;
  const StoreInventory& stores_;
  const Cluster& cluster_;
  std::map<StoreId, std::vector<RequiredFile>> linked_;
  std::set<StoreId> delivered_;
  std::vector<Transfer> transfers_;
  std::map<StoreId, std::uint64_t> given_bytes_;
};

}  // namespace

std::vector<StoreTransfers> plan_deliveries(const RestorePoint& point,
                                            const std::map<StoreId, std::set<std::string>>& files,
                                            const StoreInventory& stores,
                                            const Cluster& cluster) {
  TransferPlanner planner(point, stores, cluster);
  for (const auto& [store, names] : files) planner.deliver(store, names);
  return planner.transfers();
}

std::map<StoreId, std::set<std::string>> parameters_by_store(const Plan& plan,
                                                             const ModelSpec& model,
                                                             const StoreInventory& stores) {
  std::map<StoreId, std::set<std::string>> parameters;
  for (const ChunkPlan& chunk : plan.chunks) {
    for (const Replica& replica : chunk.replicas) {
      std::set<std::string>& names =
          parameters[stores.of(plan.ranks[replica.rank.index()].machine)];
      for (int layer = chunk.first_layer; layer < chunk.first_layer + chunk.layer_count; ++layer) {
        for (const ParameterSpec& parameter :
             model.layers[static_cast<std::size_t>(layer)].parameters) {
          names.insert(parameter.name);
        }
      }
    }
  }
  return parameters;
}

std::vector<StoreTransfers> plan_transfers(
    const RestorePoint& point,
    const std::map<StoreId, std::set<std::string>>& parameters,
    const StoreInventory& stores,
    const Cluster& cluster) {
  TransferPlanner planner(point, stores, cluster);
  for (const auto& needed : parameters) {
    const StoreId& store = needed.first;
    const bool has_all =
        store.empty() && std::ranges::all_of(point.locations, [&](const auto& file) {
          return holds(file.second, store);
        });
    // The launcher's folder may contain the whole checkpoint, which is then read in place.
    if (!has_all) planner.add(store, needed.second);
  }
  return planner.transfers();
}

}  // namespace motley
