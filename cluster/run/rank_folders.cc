#include "cluster/run/rank_folders.h"

#include <utility>

#include "checkpoint/folders.h"
#include "cluster/replication/copy_plan.h"

namespace motley {
namespace {

std::map<StoreId, std::vector<int>> ranks_by_store(const Plan& plan, const StoreInventory& stores) {
  std::map<StoreId, std::vector<int>> ranks;
  for (int rank = 0; rank < plan.rank_count(); ++rank) {
    ranks[stores.of(plan.ranks[static_cast<std::size_t>(rank)].machine)].push_back(rank);
  }
  return ranks;
}

}  // namespace

std::set<int> ranks_elsewhere(const Plan& plan, const StoreInventory& stores) {
  std::set<int> elsewhere;
  for (const auto& [store, ranks] : ranks_by_store(plan, stores)) {
    if (!store.empty()) elsewhere.insert(ranks.begin(), ranks.end());
  }
  return elsewhere;
}

std::map<int, ReplicatorJob> plan_replicators(const Plan& plan,
                                              const StoreInventory& stores,
                                              const Cluster& cluster,
                                              int copies) {
  std::map<int, ReplicatorJob> replicators;
  if (ranks_elsewhere(plan, stores).empty()) return replicators;
  std::vector<StoreId> writers;
  std::map<StoreId, int> replicator_of;
  for (const auto& [store, ranks] : ranks_by_store(plan, stores)) {
    writers.push_back(store);
    replicator_of[store] = ranks.front();
    replicators[ranks.front()] = {};
  }
  for (const auto& [from, targets] : plan_copies(writers, stores, cluster, copies)) {
    for (const StoreId& to : targets) {
      replicators[replicator_of[from]].copies_to.push_back(Rank{replicator_of[to]});
      replicators[replicator_of[to]].copies_from.push_back(Rank{replicator_of[from]});
    }
  }
  return replicators;
}

std::map<int, std::vector<std::string>> files_by_replicator(const Plan& plan,
                                                            const StoreInventory& stores) {
  std::map<int, std::vector<std::string>> files;
  for (const auto& [store, ranks] : ranks_by_store(plan, stores)) {
    for (const int rank : ranks) {
      for (const char* part : {"model", "optimizer"}) {
        files[ranks.front()].push_back(shard_file_name(part, rank, plan.rank_count()));
      }
    }
  }
  return files;
}

}  // namespace motley
