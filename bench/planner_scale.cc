// How long plans of large clusters take, how far from its bound each is, and how much of that is
// granularity. A made-up transformer (embedding, attention and MLP in turn, head) on machines of
// made-up speeds between 1 and 8, joined by one network.
//
//   planner_scale [CASE]   CASE: 16x100, 64x4x200, 64x200, 256x1000 (default: all in turn)
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "base/clock.h"
#include "partitioner/planner.h"

namespace motley {
namespace {

struct Case {
  const char* name;
  int machines;
  int kinds;
  int layers;
  int micro_batches;
};

constexpr Case kCases[] = {
    {"16x100", 16, 16, 100, 128},   // all machines differ
    {"64x4x200", 64, 4, 200, 512},  // 4 kinds of 16
    {"64x200", 64, 64, 200, 512},   // all differ
    {"256x1000", 256, 256, 1000, 512},
};

// Speeds in a geometric row from 1 to 8, in no order.
double speed_of(const Case& c, int machine) {
  const int kind = (machine * 7919) % c.kinds;
  return std::pow(8.0, c.kinds == 1 ? 0 : static_cast<double>(kind) / (c.kinds - 1));
}

ModelSpec transformer(int layers) {
  ModelSpec model;
  model.family = "gpt2";
  model.tokens_per_sample = 1024;
  model.vocab = 50257;
  for (int l = 0; l < layers; ++l) {
    LayerSpec& layer = model.layers.emplace_back();
    layer.kind = l == 0 ? "embed" : l + 1 == layers ? "head" : l % 2 == 1 ? "attn" : "mlp";
    layer.signature = layer.kind;
    layer.name = fmt::format("{}.{}", layer.kind, l);
    const std::int64_t count = layer.kind == "attn"  ? 2'400'000
                               : layer.kind == "mlp" ? 4'700'000
                                                     : 39'000'000;
    layer.parameters.push_back({layer.name + ".weight", {count}, {}, true, false});
    layer.output_floats_per_sample = l + 1 == layers ? 0 : 1024 * 768;
  }
  return model;
}

DeviceProfile device_profile(const std::string& machine, double speed) {
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

int run(const Case& c) {
  Cluster cluster;
  cluster.machines.clear();
  cluster.network = {1.25e9, 1e-4};
  Profile profile;
  for (int m = 0; m < c.machines; ++m) {
    const std::string name = fmt::format("m{}", m);
    cluster.machines.emplace_back().name = name;
    profile.devices.push_back(device_profile(name, speed_of(c, m)));
  }
  const ModelSpec model = transformer(c.layers);
  PlanOptions options;
  options.global_batch = c.micro_batches;
  options.micro_batch = 1;
  const double start_s = now_s();
  const auto planning = plan_in_full(model, cluster, profile, options);
  const double took_s = now_s() - start_s;
  if (!planning.ok()) {
    std::fprintf(stderr, "%s\n", describe(planning.error()).c_str());
    return 1;
  }
  const PlanBounds& b = planning->bounds;
  const auto percent = [](double part, double whole) { return 100 * (part / whole - 1); };
  fmt::print(
      "{:9} {:3} of {:3} machines used, {}, {:.2f} s to plan\n"
      "          least period {:.4f} s, bound {:.4f} s (+{:.4f} %{})\n"
      "          above the fluid bound of {:.4f} s: {:.2f} %, of which granularity explains {:.2f} "
      "%\n"
      "          step {:.3f} s simulated, {:.3f} s estimated, bound {:.3f} s (+{:.2f} %), period "
      "{:.4f} s\n",
      c.name, planning->plan.rank_count(), c.machines, b.method, took_s, b.least_period_s,
      b.period_bound_s, percent(b.least_period_s, b.period_bound_s),
      b.proven ? ", proven optimal" : "", b.fluid_period_s,
      percent(b.least_period_s, b.fluid_period_s),
      percent(b.granularity_period_s, b.fluid_period_s), planning->plan.predicted_step_s,
      b.estimate_s, b.step_bound_s, percent(b.estimate_s, b.step_bound_s), b.period_s);
  return 0;
}

}  // namespace
}  // namespace motley

int main(int argc, char** argv) {
  for (const motley::Case& c : motley::kCases) {
    if (argc > 1 && std::string(argv[1]) != c.name) continue;
    if (motley::run(c) != 0) return 1;
  }
  return 0;
}
