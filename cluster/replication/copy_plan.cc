#include "cluster/replication/copy_plan.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

namespace motley {

namespace {

std::vector<StoreId> ring_of(std::vector<StoreId> left,
                             const StoreInventory& stores,
                             const Cluster& cluster) {
  std::vector<StoreId> ring;
  while (!left.empty()) {
    const auto distance = [&](const StoreId& to) {
      const MachineStore& target = stores.by_id.at(to);
      if (ring.empty()) return std::tuple(0.0, 0.0, to);
      const LinkSpeed link =
          cluster.link(stores.by_id.at(ring.back()).machines.front(), target.machines.front());
      return std::tuple(-link.bandwidth_bytes_per_s,
                        -static_cast<double>(target.contents.free_bytes), to);
    };
    const auto next = std::ranges::min_element(left, {}, distance);
    ring.push_back(*next);
    left.erase(next);
  }
  return ring;
}

}  // namespace

std::map<StoreId, std::vector<StoreId>> plan_copies(const std::vector<StoreId>& writers,
                                                    const StoreInventory& stores,
                                                    const Cluster& cluster,
                                                    int copies) {
  std::map<StoreId, std::vector<StoreId>> plan;
  const std::vector<StoreId> ring = ring_of(writers, stores, cluster);
  const std::size_t each = std::min(static_cast<std::size_t>(copies), ring.size() - 1);
  for (std::size_t i = 0; i < ring.size(); ++i) {
    std::vector<StoreId>& targets = plan[ring[i]];
    for (std::size_t k = 1; k <= each; ++k) targets.push_back(ring[(i + k) % ring.size()]);
  }
  return plan;
}

}  // namespace motley
