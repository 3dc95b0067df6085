#include "cli/report/planned_cluster.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plan/units.h"

namespace motley {
namespace {

using MachinePairs = std::map<std::pair<std::string, std::string>, double>;  // bytes per second

std::vector<Machine> machines_of(const Plan& plan) {
  std::vector<Machine> machines;
  for (const RankPlan& rank : plan.ranks) {
    const auto known = std::ranges::find(machines, rank.machine, &Machine::name);
    if (known != machines.end()) {
      known->devices.push_back(rank.device);
      continue;
    }
    Machine& machine = machines.emplace_back();
    machine.name = rank.machine;
    machine.devices = {rank.device};
  }
  return machines;
}

void add_of_plan(const Plan& plan, const std::vector<Machine>& machines, MachinePairs& speeds) {
  for (const RankPlan& from : plan.ranks) {
    if (from.link_mbps <= 0) continue;
    for (const Machine& to : machines) {
      speeds[{from.machine, to.name}] = static_cast<double>(from.link_mbps) * kBytesPerMegabit;
    }
  }
}

void add_of_prediction(const Plan& plan, const RunPrediction& prediction, MachinePairs& speeds) {
  for (const LinkPrediction& link : prediction.links) {
    if (link.bandwidth_bytes_per_s <= 0) continue;
    speeds[{plan.ranks[link.from.index()].machine, plan.ranks[link.to.index()].machine}] =
        link.bandwidth_bytes_per_s;
  }
}

}  // namespace

Cluster planned_cluster(const Plan& plan, const std::optional<RunPrediction>& prediction) {
  Cluster cluster;
  cluster.machines = machines_of(plan);
  MachinePairs speeds;
  add_of_plan(plan, cluster.machines, speeds);
  if (prediction) add_of_prediction(plan, *prediction, speeds);
  for (const auto& [pair, bytes_per_s] : speeds) {
    if (pair.first == pair.second) continue;
    LinkSpeed speed = cluster.network;
    speed.bandwidth_bytes_per_s = bytes_per_s;
    cluster.links.push_back({pair.first, pair.second, speed});
  }
  return cluster;
}

}  // namespace motley
