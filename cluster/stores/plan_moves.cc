#include "cluster/stores/plan_moves.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "checkpoint/store/view.h"

namespace motley {
namespace {

bool holds(const std::vector<StoreId>& ids, const StoreId& id) {
  return std::ranges::count(ids, id) > 0;
}

// A file that a folder lacks, and its source.
struct Transfer {
  StoreId from;
  StoreId to;
  FileNeed need;
};

std::uint64_t bytes_of(const FileNeed& need) {
  // The sizes of tensors are in the file; their share by count is accurate enough for balancing.
  const std::size_t all = std::max<std::size_t>(1, need.file.tensor_hashes.size());
  return need.file.bytes / all * need.tensors.size();
}

class MovePlanner {
 public:
  MovePlanner(const RestorePoint& point, const Stores& stores, const Cluster& cluster)
      : point_(point), stores_(stores), cluster_(cluster) {}

  void add(const StoreId& store, const std::set<std::string>& parameters) {
    std::vector<FileNeed>& linked = linked_[store];
    for (FileNeed& need : needs_of(point_.texts.manifest, parameters)) {
      const std::vector<StoreId>& holders = point_.holders.at(need.file.name);
      if (holds(holders, store)) {
        linked.push_back(std::move(need));
      } else {
        transfer(store, std::move(need));
      }
    }
  }

  void deliver(const StoreId& store, const std::set<std::string>& files) {
    delivered_.insert(store);
    for (WrittenFile& file : tensor_files(point_.texts.manifest)) {
      if (!files.contains(file.name)) continue;
      FileNeed need{std::move(file), {}};
      for (const auto& [tensor, hash] : need.file.tensor_hashes) need.tensors.insert(tensor);
      transfer(store, std::move(need));
    }
  }

  std::vector<StoreMoves> moves() {
    std::vector<StoreMoves> moves;
    for (const StoreId& store : involved()) {
      moves.push_back({store, stores_.by_id.at(store).machines.front(), {}});
    }
    for (std::size_t i = 0; i < moves.size(); ++i) {
      moves[i].order = order_of(moves[i].store, Rank{static_cast<std::int32_t>(i)}, moves);
    }
    return moves;
  }

 private:
  void transfer(const StoreId& to, FileNeed need) {
    const StoreId from = best_of(point_.holders.at(need.file.name), to);
    given_bytes_[from] += bytes_of(need);
    transfers_.push_back({from, to, std::move(need)});
  }

  [[nodiscard]] StoreId best_of(const std::vector<StoreId>& holders, const StoreId& to) const {
    MOTLEY_CHECK(!holders.empty(), "a file without a holder");
    return *std::ranges::min_element(holders, {}, [&](const StoreId& from) {
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

  [[nodiscard]] MoveOrder order_of(const StoreId& self,
                                   Rank rank,
                                   const std::vector<StoreMoves>& all) const {
    const auto rank_of = [&](const StoreId& id) {
      const auto found = std::ranges::find(all, id, &StoreMoves::store);
      return Rank{static_cast<std::int32_t>(found - all.begin())};
    };
    MoveOrder order{.self = rank, .rank_count = static_cast<int>(all.size())};
    order.manifest = point_.texts.manifest;
    order.manifest.files.clear();
    order.makes_view = linked_.contains(self);
    if (delivered_.contains(self)) order.texts = point_.texts;
    if (const auto linked = linked_.find(self); linked != linked_.end()) {
      for (const FileNeed& need : linked->second) {
        order.linked.push_back(need.file.name);
        order.manifest.files.push_back(need.file);
      }
    }
    std::map<std::pair<StoreId, StoreId>, std::int32_t> streams;
    for (const Transfer& transfer : transfers_) {
      const std::int32_t stream = streams[{transfer.from, transfer.to}]++;
      if (transfer.from != self && transfer.to != self) continue;
      const bool is_mine = transfer.from == self;
      FileMove move{.stream = stream,
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
  const Stores& stores_;
  const Cluster& cluster_;
  std::map<StoreId, std::vector<FileNeed>> linked_;
  std::set<StoreId> delivered_;
  std::vector<Transfer> transfers_;
  std::map<StoreId, std::uint64_t> given_bytes_;
};

}  // namespace

std::vector<StoreMoves> plan_deliveries(const RestorePoint& point,
                                        const std::map<StoreId, std::set<std::string>>& files,
                                        const Stores& stores,
                                        const Cluster& cluster) {
  MovePlanner planner(point, stores, cluster);
  for (const auto& [store, names] : files) planner.deliver(store, names);
  return planner.moves();
}

std::map<StoreId, std::set<std::string>> parameters_by_store(const Plan& plan,
                                                             const ModelSpec& model,
                                                             const Stores& stores) {
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

std::vector<StoreMoves> plan_moves(const RestorePoint& point,
                                   const std::map<StoreId, std::set<std::string>>& parameters,
                                   const Stores& stores,
                                   const Cluster& cluster) {
  MovePlanner planner(point, stores, cluster);
  for (const auto& needed : parameters) {
    const StoreId& store = needed.first;
    const bool has_all = store.empty() && std::ranges::all_of(point.holders, [&](const auto& file) {
                           return holds(file.second, store);
                         });
    // The launcher's folder may contain the whole checkpoint, which is then read in place.
    if (!has_all) planner.add(store, needed.second);
  }
  return planner.moves();
}

}  // namespace motley
