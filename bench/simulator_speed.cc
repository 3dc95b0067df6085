// The speed of the simulator: a synthetic model of equal layers on a chain of machines, one layer
// each.
//
//   build/core/bin/simulator_speed [RANKS [MICRO_BATCHES]]
#include <fmt/format.h>

#include <cstdlib>
#include <string>

#include "base/clock.h"
#include "partitioner/cost/cost_model.h"
#include "partitioner/simulate/simulator.h"
#include "pipeline/schedule/schedules.h"

namespace {

using namespace motley;

ModelSpec made_up_model(int layers) {
  ModelSpec model;
  model.family = "mlp";
  model.tokens_per_sample = 256;
  for (int l = 0; l < layers; ++l) {
    LayerSpec& layer = model.layers.emplace_back();
    layer.name = fmt::format("l{}", l);
    layer.kind = layer.signature = "layer";
    layer.parameters.push_back({layer.name + ".weight", {1024, 1024}, {}, false, false});
    layer.outputs = {{256, 1024}};
  }
  return model;
}

Cluster made_up_cluster(int machines) {
  Cluster cluster;
  cluster.machines.clear();
  for (int m = 0; m < machines; ++m) cluster.machines.emplace_back().name = fmt::format("m{}", m);
  return cluster;
}

// Machines with four speeds in rotation.
Profile made_up_profile(const Cluster& cluster) {
  Profile profile;
  for (std::size_t m = 0; m < cluster.machines.size(); ++m) {
    const double slowness = 1 + 0.1 * static_cast<double>(m % 4);
    DeviceProfile& device = profile.devices.emplace_back();
    device.machine = cluster.machines[m].name;
    device.device = "cpu";
    device.memory_bytes = std::int64_t{16} << 30;
    device.optimizer_s_per_parameter = 1e-9;
    device.message_s = 1e-5;
    device.codecs["none"] = {4, 2e-10, 2e-10};
    device.layers["layer"] = {
        {.micro_batch = 1, .forward_s = 0.004 * slowness, .backward_s = 0.008 * slowness}};
  }
  return profile;
}

Plan chain(const Cluster& cluster, int micro_batches) {
  Plan plan;
  plan.micro_batches = micro_batches;
  for (const Machine& machine : cluster.machines) {
    const int r = plan.rank_count();
    plan.ranks.push_back({machine.name, "cpu"});
    plan.chunks.push_back(
        {.first_layer = r, .layer_count = 1, .replicas = {{Rank{r}, micro_batches}}});
  }
  return plan;
}

Result<void> measure(int ranks, int micro_batches) {
  const ModelSpec model = made_up_model(ranks);
  const Cluster cluster = made_up_cluster(ranks);
  const Plan plan = chain(cluster, micro_batches);
  MOTLEY_ASSIGN(const CostModel cost, CostModel::make(model, cluster, made_up_profile(cluster), 1,
                                                      {.moments_per_parameter = 2}));
  MOTLEY_ASSIGN(const std::vector<int> slots, slots_of_ranks(plan, cost));

  const double schedule_start_s = now_s();
  MOTLEY_ASSIGN(const Schedule schedule, make_schedule(plan, false));
  const double start_s = now_s();
  MOTLEY_ASSIGN(const SimulatedStep step, simulate_step(schedule, plan, model, cost, slots));
  const double end_s = now_s();

  std::size_t actions = 0;
  for (const auto& list : schedule.ranks) actions += list.size();
  fmt::print("{} ranks, {} micro-batches: {} actions, a step of {:.3f} s\n", ranks, micro_batches,
             actions, step.step_s);
  fmt::print("schedule made in {:.3f} s\n", start_s - schedule_start_s);
  fmt::print("simulated in {:.3f} s: {:.2f} M actions/s\n", end_s - start_s,
             static_cast<double>(actions) / (end_s - start_s) / 1e6);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 1024;
  const int micro_batches = argc > 2 ? std::atoi(argv[2]) : 256;
  if (ranks < 1 || micro_batches < 1) {
    fmt::print(stderr, "usage: simulator_speed [RANKS [MICRO_BATCHES]]\n");
    return 2;
  }
  const Result<void> result = measure(ranks, micro_batches);
  if (result.ok()) return 0;
  fmt::print(stderr, "{}", describe(result.error()));
  return 1;
}
