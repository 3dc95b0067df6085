#include "partitioner/cost/step_prices.h"

#include <gtest/gtest.h>

#include "tests/partitioner/planning_fixtures.h"

namespace motley {
namespace {

constexpr std::int64_t kValues = 3 * 1280;
constexpr double kEncode_s = 2;
constexpr double kDecode_s = 3;
constexpr double kMessage_s = 0.5;

// One layer on three devices of one machine, which all-reduce its gradient.
struct OneMachine {
  ModelSpec model = sketch_model({{.work_s = 1, .parameters = kValues}});
  Cluster cluster;
  Profile profile;
  Plan plan;

  OneMachine() {
    cluster.machines.clear();
    Machine& machine = cluster.machines.emplace_back();
    machine.name = "m0";
    machine.devices = {"a", "b", "c"};
    ChunkPlan& chunk = plan.chunks.emplace_back();
    chunk.layer_count = 1;
    for (int rank = 0; rank < 3; ++rank) {
      const std::string& name = machine.devices[static_cast<std::size_t>(rank)];
      DeviceProfile& device = profile.devices.emplace_back();
      device.machine = "m0";
      device.device = name;
      device.message_s = kMessage_s;
      device.codecs["none"] = {4, kEncode_s, kDecode_s};
      device.layers["l0"] = {{.micro_batch = 1, .forward_s = 1, .backward_s = 1}};
      plan.ranks.push_back({.machine = "m0", .device = name});
      chunk.replicas.push_back({.rank = Rank{rank}, .micro_batches = 1});
    }
    plan.micro_batch = 1;
    plan.micro_batches = 3;
  }

  // The all-reduce's part of rank 1's time, without per-message costs.
  double sum_s() const {
    const auto cost = CostModel::make(model, cluster, profile, 1, {.moments_per_parameter = 2});
    EXPECT_TRUE(cost.ok()) << describe(cost.error());
    const std::vector<int> slots = {0, 1, 2};
    const StepPrices prices(plan, *cost, slots);
    double sum_s = 0;
    for (const ReducePrice& it : prices.reduce(0)) {
      if (it.message.from == Rank{1}) sum_s += it.price.send_s - kMessage_s;
      if (it.message.to == Rank{1}) sum_s += it.price.receive_s - kMessage_s;
    }
    return sum_s;
  }
};

// A third to each of the others and as much from them, and the same again for the all-gather.
TEST(StepPrices, SumsInsideAMachineAreMessagesWhereNothingElseIsKnown) {
  EXPECT_DOUBLE_EQ(OneMachine().sum_s(), kValues * (4 * kEncode_s + 4 * kDecode_s) / 3);
}

// The reduced third is written once, for any number of readers.
TEST(StepPrices, SumsInsideAMachinePassThroughSharedMemoryWhereItWasMeasured) {
  constexpr double kShared_s = 0.25;
  OneMachine machine;
  for (DeviceProfile& device : machine.profile.devices) device.shared_s_per_float = kShared_s;
  EXPECT_DOUBLE_EQ(machine.sum_s(), kValues * (3 * kShared_s + 4 * kShared_s) / 3);
}

}  // namespace
}  // namespace motley
