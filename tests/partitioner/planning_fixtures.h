// Small models and machines with round numbers, shared by the planner's tests.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "partitioner/cost/cost_model.h"
#include "partitioner/report/planning_input.h"
#include "partitioner/search/planner.h"

namespace motley {

struct LayerSketch {
  double work_s = 1;  // forward and backward of one sample, on a machine of speed 1
  std::int64_t parameters = 1000;
  std::int64_t output_floats = 0;  // of one sample
  std::int64_t saved_bytes = 0;    // of one sample
  // Per sample, between the parts of backward, which take a third of the work each; nullopt: the
  // parts were not measured.
  std::optional<std::int64_t> queued_bytes = {};
  std::int64_t exact_bytes = 0;  // of one sample, in addition to output_floats
};

struct MachineSketch {
  double speed = 1;
  std::int64_t memory_bytes = std::int64_t{1} << 40;
  std::vector<double> layer_speeds;  // [layer] factor on `speed`; empty = 1 for all
  double message_s = 0;
  double half_s_per_float = 0;  // to encode, and to decode, with the codec "half"
  std::string medium;

  [[nodiscard]] double speed_of(std::size_t layer) const {
    return layer_speeds.empty() ? speed : speed * layer_speeds[layer];
  }
};

// A codec of the sketches; "none" costs nothing but 4 bytes per float.
inline constexpr const char* kHalf = "half";

// A model of these layers, "l0", "l1", …; each has its own kind.
inline ModelSpec sketch_model(const std::vector<LayerSketch>& layers) {
  ModelSpec model;
  model.family = "mlp";
  model.tokens_per_sample = 1;
  model.sample.target_limit = 10;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    LayerSpec& layer = model.layers.emplace_back();
    layer.name = layer.kind = layer.signature = fmt::format("l{}", l);
    layer.parameters.push_back({layer.name + ".weight", {layers[l].parameters}, {}, false, false});
    if (l + 1 == layers.size()) continue;
    layer.outputs = {{layers[l].output_floats}};
    if (layers[l].exact_bytes > 0) {
      layer.exact_outputs = {{Dtype::kBool, {layers[l].exact_bytes}}};
    }
  }
  return model;
}

// Machines "m0", "m1", … with a CPU each, connected by links of this speed.
inline Cluster sketch_cluster(const std::vector<MachineSketch>& machines, LinkSpeed link) {
  Cluster cluster;
  cluster.network = link;
  cluster.machines.clear();
  for (std::size_t m = 0; m < machines.size(); ++m) {
    Machine& machine = cluster.machines.emplace_back();
    machine.name = fmt::format("m{}", m);
    machine.medium = machines[m].medium;
  }
  return cluster;
}

// Times proportional to the micro-batch; a third of the work is the forward.
inline Profile sketch_profile(const std::vector<LayerSketch>& layers,
                              const std::vector<MachineSketch>& machines) {
  Profile profile;
  for (std::size_t m = 0; m < machines.size(); ++m) {
    DeviceProfile& device = profile.devices.emplace_back();
    device.machine = fmt::format("m{}", m);
    device.device = "cpu";
    device.memory_bytes = machines[m].memory_bytes;
    device.message_s = machines[m].message_s;
    device.codecs["none"] = CodecSample{};
    device.codecs[kHalf] = {2, machines[m].half_s_per_float, machines[m].half_s_per_float};
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const double work_s = layers[l].work_s / machines[m].speed_of(l);
      device.layers[fmt::format("l{}", l)] = {{.micro_batch = 1,
                                               .forward_s = work_s / 3,
                                               .backward_s = work_s * 2 / 3,
                                               .saved_bytes = layers[l].saved_bytes}};
      if (layers[l].queued_bytes) {
        device.layers[fmt::format("l{}", l)][0].split = {work_s / 3, work_s / 3,
                                                         *layers[l].queued_bytes};
      }
    }
  }
  return profile;
}

// Ties a parameter of the first and the last layer.
inline void tie(ModelSpec& model) {
  ParameterSpec use = model.layers.front().parameters.front();
  use.tied_use = true;
  model.layers.back().parameters.push_back(use);
}

struct Problem {
  std::vector<LayerSketch> layers;
  std::vector<MachineSketch> machines;
  LinkSpeed link{1e18, 0};
  std::vector<LinkOverride> links;
  bool tied = false;  // the first layer and the last share a parameter
  PlanOptions options{.process_state = {.moments_per_parameter = 2}};

  [[nodiscard]] ModelSpec model() const {
    ModelSpec model = sketch_model(layers);
    if (tied && layers.size() > 1) tie(model);
    return model;
  }

  [[nodiscard]] Cluster cluster() const {
    Cluster cluster = sketch_cluster(machines, link);
    cluster.links = links;
    return cluster;
  }

  [[nodiscard]] Profile profile() const { return sketch_profile(layers, machines); }

  [[nodiscard]] Result<CostModel> cost() const {
    return CostModel::make(model(), cluster(), profile(), 1, {.moments_per_parameter = 2});
  }

  [[nodiscard]] PlanningInput input() const { return {model(), cluster(), profile(), options}; }

  [[nodiscard]] Result<Plan> plan() const {
    return make_plan(model(), cluster(), profile(), options);
  }
};

}  // namespace motley
