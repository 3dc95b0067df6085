#include "partitioner/cost/shared_links.h"

#include <algorithm>

namespace motley {

double SharedLinks::Port::take(double bytes, double now_s) {
  const double start_s = std::max(now_s, free_s);
  free_s = start_s + bytes / bandwidth_bytes_per_s;
  return start_s;
}

SharedLinks::SharedLinks(const CostModel& cost, const std::vector<int>& rank_slots)
    : cost_(cost), rank_slots_(rank_slots) {
  for (const int slot : rank_slots) {
    machine_of_.push_back(static_cast<std::uint32_t>(cost.machine_of(slot)));
  }
  for (const CostModel::MachineNetwork& network : cost.networks()) {
    uplinks_.push_back({network.up_bytes_per_s});
    downlinks_.push_back({network.down_bytes_per_s});
  }
  pair_free_s_.assign(uplinks_.size() * uplinks_.size(), 0);
}

SharedLinks::Passage SharedLinks::leave(std::size_t from,
                                        std::size_t to,
                                        double bytes,
                                        double now_s) {
  const std::size_t here = machine_of_[from];
  const std::size_t there = machine_of_[to];
  const LinkSpeed speed = cost_.link(rank_slots_[from], rank_slots_[to]);
  // A slow pair holds back its own messages only: the uplink goes on with those of other pairs.
  const double leaves_s = here == there ? now_s : uplinks_[here].take(bytes, now_s);
  double& free_s = pair_free_s_[here * uplinks_.size() + there];
  const double start_s = std::max(leaves_s, free_s);
  free_s = start_s + bytes / speed.bandwidth_bytes_per_s;
  return {start_s, free_s, start_s + speed.latency_s, free_s + speed.latency_s};
}

double SharedLinks::reach(
    std::size_t from, std::size_t to, double bytes, double last_byte_s, double now_s) {
  const std::size_t there = machine_of_[to];
  if (machine_of_[from] == there) return last_byte_s;
  Port& port = downlinks_[there];
  port.take(bytes, now_s);
  return std::max(last_byte_s, port.free_s);
}

}  // namespace motley
