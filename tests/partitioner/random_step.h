// Random steps to simulate: a model, unequal machines and links, and a plan with replicas, codecs
// and recomputation. All times differ, so that no two messages tie.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "partitioner/cost/cost_model.h"
#include "partitioner/simulate/simulator.h"
#include "pipeline/schedule/schedules.h"
#include "tests/partitioner/planning_fixtures.h"
#include "tests/support/property.h"

namespace motley {

struct RandomStep {
  ModelSpec model;
  Cluster cluster;
  Profile profile;
  Plan plan;
};

// Between low and high, with as many digits as it takes to be unlike all others.
inline double random_real(double low, double high) {
  constexpr int kSteps = 1 << 30;
  return low + (high - low) * *rc::gen::noShrink(rc::gen::inRange(1, kSteps)) / kSteps;
}

// Of up to so many devices a machine, at most three.
inline Cluster random_cluster(int devices) {
  Cluster cluster;
  cluster.network = {random_real(1e3, 1e5), random_real(0, 0.1)};
  cluster.local = {random_real(1e4, 1e6), random_real(0, 0.01)};
  cluster.machines.clear();
  const int machines = *rc::gen::inRange(1, 5);
  for (int m = 0; m < machines; ++m) {
    Machine& machine = cluster.machines.emplace_back();
    machine.name = fmt::format("m{}", m);
    machine.devices = {"cpu"};
    if (*rc::gen::arbitrary<bool>()) machine.devices.emplace_back("virtual");
    if (devices > 2 && *rc::gen::inRange(0, 4) == 0) machine.devices.emplace_back("virtual:1");
    machine.medium = *rc::gen::element("", "", "wifi", "radio");
    for (int from = 0; from < m; ++from) {
      if (*rc::gen::arbitrary<bool>()) continue;
      cluster.links.push_back(
          {fmt::format("m{}", from), machine.name, {random_real(1e3, 1e5), random_real(0, 0.1)}});
    }
  }
  return cluster;
}

inline DeviceProfile random_device(const std::string& machine,
                                   const std::string& name,
                                   std::size_t layers) {
  DeviceProfile device;
  device.machine = machine;
  device.device = name;
  device.memory_bytes = std::int64_t{1} << 40;
  device.optimizer_s_per_parameter = random_real(0, 1e-3);
  device.message_s = random_real(1e-4, 1e-2);
  if (*rc::gen::arbitrary<bool>()) device.shared_s_per_float = random_real(0, 1e-3);
  device.codecs["none"] = {4, random_real(0, 1e-3), random_real(0, 1e-3)};
  device.codecs["fp16"] = {2, random_real(0, 1e-3), random_real(0, 1e-3)};
  for (std::size_t l = 0; l < layers; ++l) {
    LayerSample sample{
        .micro_batch = 1, .forward_s = random_real(0.01, 1), .backward_s = random_real(0.01, 1)};
    sample.split = {random_real(0, sample.backward_s), random_real(0, 1), 0};
    device.layers[fmt::format("l{}", l)] = {sample};
  }
  return device;
}

inline Profile random_profile(const Cluster& cluster, std::size_t layers) {
  Profile profile;
  for (const Machine& machine : cluster.machines) {
    for (const std::string& device : machine.devices) {
      profile.devices.push_back(random_device(machine.name, device, layers));
    }
  }
  return profile;
}

// Some of the ranks, ascending, with at least one micro-batch each.
inline std::vector<Replica> random_replicas(int ranks, int micro_batches) {
  const int count = *rc::gen::inRange(1, std::min(ranks, micro_batches) + 1);
  std::vector<Replica> replicas;
  for (int r = 0; r < ranks && static_cast<int>(replicas.size()) < count; ++r) {
    const int missing = count - static_cast<int>(replicas.size());
    if (ranks - r == missing || *rc::gen::arbitrary<bool>()) replicas.push_back({Rank{r}, 1});
  }
  for (int extra = micro_batches - count; extra > 0; --extra) {
    ++replicas[*rc::gen::inRange<std::size_t>(0, replicas.size())].micro_batches;
  }
  return replicas;
}

// `devices`: random_cluster's.
inline RandomStep random_step(int devices) {
  RandomStep step;
  std::vector<LayerSketch> layers(*rc::gen::inRange<std::size_t>(1, 6));
  for (LayerSketch& layer : layers) {
    layer = {.work_s = 0,
             .parameters = *rc::gen::inRange(1, 1000),
             .output_floats = *rc::gen::inRange(1, 2000),
             .exact_bytes = *rc::gen::element(0, 0, 1001)};
  }
  step.model = sketch_model(layers);
  step.cluster = random_cluster(devices);
  step.profile = random_profile(step.cluster, layers.size());
  for (const Machine& machine : step.cluster.machines) {
    for (const std::string& device : machine.devices) {
      step.plan.ranks.push_back({machine.name, device});
    }
  }
  step.plan.gradient_codec = *rc::gen::element<std::string>("none", "fp16");
  step.plan.micro_batches = *rc::gen::inRange(1, 7);
  step.plan.schedule = *rc::gen::element("gpipe", "1f1b", "split");
  const int layer_count = static_cast<int>(layers.size());
  for (int first = 0; first < layer_count;) {
    const int count = *rc::gen::inRange(1, layer_count - first + 1);
    step.plan.chunks.push_back(
        {.first_layer = first,
         .layer_count = count,
         .replicas = random_replicas(step.plan.rank_count(), step.plan.micro_batches),
         .codec = *rc::gen::element("none", "fp16"),
         .recompute = *rc::gen::arbitrary<bool>()});
    first += count;
  }
  if (step.plan.schedule == "split" && *rc::gen::arbitrary<bool>()) {
    for (ChunkPlan& chunk : step.plan.chunks) chunk.queued_weights = *rc::gen::inRange(1, 5);
  }
  if (step.plan.schedule != "gpipe" && *rc::gen::arbitrary<bool>()) {
    int in_flight = step.plan.micro_batches;
    for (ChunkPlan& chunk : step.plan.chunks) {
      in_flight = *rc::gen::inRange(1, in_flight + 1);
      chunk.in_flight = in_flight;
    }
  }
  return step;
}

}  // namespace motley
