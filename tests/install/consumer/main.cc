// A program that uses the installed package: plans a configuration's model for two virtual
// machines, makes a codec, and opens a given checkpoint.
#include <iostream>

#include "checkpoint/checkpoint.h"
#include "cluster/planning/planning_options.h"
#include "compression/make_codec.h"
#include "models/spec/model_spec.h"
#include "partitioner/cost/virtual_profile.h"
#include "partitioner/search/planner.h"
#include "plan/cluster.h"
#include "plan/cluster/cluster_file.h"
#include "plan/cluster/virtual_numbers.h"
#include "run_config/config_io.h"

namespace {

int fail(const motley::Error& error) {
  std::cerr << motley::describe(error);
  return static_cast<int>(error.code);
}

constexpr const char* kConfig = R"(
[model]
layers = 4
width = 128
heads = 4
context = 64
vocab = 1000
[data]
kind = "synthetic"
)";

constexpr const char* kCluster = R"(
[[machine]]
name = "desktop"
devices = ["virtual"]
memory_gib = 8
[machine.virtual]
gflops = 200
[[machine]]
name = "laptop"
devices = ["virtual"]
memory_gib = 8
[machine.virtual]
gflops = 100
)";

}  // namespace

int main(int argc, char** argv) {
  const auto config = motley::resolve_config(kConfig, "the consumer's configuration", {}, {});
  if (!config.ok()) return fail(config.error());
  const auto model = motley::describe_model(config->config.model);
  if (!model.ok()) return fail(model.error());
  const auto cluster = motley::parse_cluster(kCluster, "the consumer's cluster");
  if (!cluster.ok()) return fail(cluster.error());
  const auto options = motley::plan_options(config->config, *model, 0);
  if (!options.ok()) return fail(options.error());
  motley::Profile profile;
  for (const motley::Machine& machine : cluster->machines) {
    motley::DeviceProfile device = motley::virtual_profile(
        *model, motley::virtual_numbers(machine, config->config.train.precision).speed,
        {.global_batch = options->global_batch}, {1, 4, 16});
    device.machine = machine.name;
    device.device = machine.devices.front();
    device.codecs["none"] = {};
    profile.devices.push_back(device);
  }
  const auto plan = motley::make_plan(*model, *cluster, profile, *options);
  if (!plan.ok()) return fail(plan.error());
  std::cout << plan->ranks.size() << " ranks";

  const auto codec = motley::make_codec("fp16");
  if (!codec.ok()) return fail(codec.error());
  std::cout << ", " << (*codec)->bytes_max(10) << " bytes";

  if (argc < 2) return 2;
  const auto checkpoint = motley::CheckpointReader::open(argv[1]);
  if (!checkpoint.ok()) return fail(checkpoint.error());
  std::cout << ", step " << checkpoint->manifest()->state.step << '\n';
}
