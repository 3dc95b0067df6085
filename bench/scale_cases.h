// Large synthetic planning problems: a transformer (embedding, alternating attention and MLP,
// head) on machines of speeds between 1 and 8, connected by one network.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "partitioner/search/planner.h"

namespace motley {

struct ScaleCase {
  const char* name;
  int machines;
  int kinds;
  int layers;
  int micro_batches;
};

inline constexpr ScaleCase kScaleCases[] = {
    {"16x100", 16, 16, 100, 128},   // all machines differ
    {"64x4x200", 64, 4, 200, 512},  // 4 kinds of 16
    {"64x200", 64, 64, 200, 512},   // all differ
    {"256x1000", 256, 256, 1000, 512},
};

// Speeds in a geometric sequence from 1 to 8, unordered.
inline double speed_of(const ScaleCase& c, int machine) {
  const int kind = (machine * 7919) % c.kinds;
  return std::pow(8.0, c.kinds == 1 ? 0 : static_cast<double>(kind) / (c.kinds - 1));
}

inline ModelSpec transformer(int layers) {
  ModelSpec model;
  model.family = "gpt2";
  model.tokens_per_sample = 1024;
  for (int l = 0; l < layers; ++l) {
    LayerSpec& layer = model.layers.emplace_back();
    layer.kind = l == 0 ? "embed" : l + 1 == layers ? "head" : l % 2 == 1 ? "attn" : "mlp";
    layer.signature = layer.kind;
    layer.name = fmt::format("{}.{}", layer.kind, l);
    const std::int64_t count = layer.kind == "attn"  ? 2'400'000
                               : layer.kind == "mlp" ? 4'700'000
                                                     : 39'000'000;
    layer.parameters.push_back({layer.name + ".weight", {count}, {}, true, false});
    if (l + 1 < layers) layer.outputs = {{1024, 768}};
  }
  return model;
}

inline DeviceProfile device_profile(const std::string& machine, double speed) {
  DeviceProfile device;
  device.machine = machine;
  device.device = "cpu";
  device.memory_bytes = std::int64_t{64} << 30;
  device.optimizer_s_per_parameter = 1e-9 / speed;
  device.codecs["none"] = {4, 5e-10 / speed, 5e-10 / speed};
  const auto layer = [&](double work_s) {
    return std::vector<LayerSample>{{.micro_batch = 1,
                                     .forward_s = work_s / 3 / speed,
                                     .backward_s = work_s * 2 / 3 / speed,
                                     .saved_bytes = 30'000'000,
                                     .workspace_bytes = 10'000'000}};
  };
  device.layers = {
      {"embed", layer(0.01)}, {"attn", layer(0.4)}, {"mlp", layer(0.6)}, {"head", layer(4)}};
  return device;
}

struct ScaleProblem {
  ModelSpec model;
  Cluster cluster;
  Profile profile;
  PlanOptions options{.process_state = {.moments_per_parameter = 2}};
};

inline ScaleProblem make_problem(const ScaleCase& c) {
  ScaleProblem problem;
  problem.model = transformer(c.layers);
  problem.cluster.machines.clear();
  problem.cluster.network = {1.25e9, 1e-4};
  for (int m = 0; m < c.machines; ++m) {
    const std::string name = fmt::format("m{}", m);
    problem.cluster.machines.emplace_back().name = name;
    problem.profile.devices.push_back(device_profile(name, speed_of(c, m)));
  }
  problem.options.global_batch = c.micro_batches;
  problem.options.micro_batch = 1;
  problem.options.replicas = false;  // the bounds are for pipelines without replicas
  return problem;
}

}  // namespace motley
