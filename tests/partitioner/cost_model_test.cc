#include "partitioner/cost/cost_model.h"

#include "tests/partitioner/oracle.h"
#include "tests/partitioner/random_problem.h"

namespace motley {
namespace {

Problem two_layers() {
  Problem problem;
  problem.layers = {{3, 1000, 50, 100}, {6, 2000, 0, 200}};
  problem.machines = {{1, 1 << 20}, {2, 1 << 20}};
  problem.link = {1000, 0.5};
  return problem;
}

TEST(CostModel, AddsUpLayers) {
  const auto cost = two_layers().cost();
  ASSERT_TRUE(cost.ok());
  EXPECT_DOUBLE_EQ(cost->forward_s(0, 0, 2, 1), 3);
  EXPECT_DOUBLE_EQ(cost->backward_s(0, 0, 2, 1), 6);
  EXPECT_DOUBLE_EQ(cost->forward_s(1, 1, 2, 2), 2);
  EXPECT_DOUBLE_EQ(cost->transfer_s(0, 1, cost->frame_bytes(0, cost->boundary(0, 2), "none")),
                   0.5 + (64 + 50 * 2 * 4) / 1000.0);
}

TEST(CostModel, PricesExactBytesForwardAlone) {
  Problem problem;
  problem.layers = {{.output_floats = 50, .exact_bytes = 32}, {}};
  problem.machines = {{.message_s = 0.5, .half_s_per_float = 0.25}, {}};
  const auto cost = problem.cost();
  ASSERT_TRUE(cost.ok());
  const BoundarySize size = cost->boundary(0, 2);
  EXPECT_EQ(size, (BoundarySize{100, 64}));
  EXPECT_EQ(cost->frame_bytes(0, size, "none"), 64 + 400 + 64);
  EXPECT_EQ(cost->frame_bytes(0, size, kHalf), 64 + 200 + 64);
  EXPECT_EQ(cost->frame_bytes(0, size.gradient(), kHalf), 64 + 200);
  // Only the floats are encoded, forward and backward; "none" costs nothing here.
  EXPECT_EQ(cost->boundary_before_s(0, size, kHalf), 2 * 25 + 2 * 0.5);
  EXPECT_EQ(cost->boundary_behind_s(0, size, kHalf), 2 * 25 + 2 * 0.5);
  EXPECT_EQ(cost->memory_parts(0, 0, 1, 2).boundary_bytes, 464);
  EXPECT_EQ(cost->memory_parts(0, 1, 2, 2).boundary_bytes, 464);
}

TEST(CostModel, ExactBytesCostTheirCopyAtEachEnd) {
  Problem problem;
  problem.layers = {{.output_floats = 50, .exact_bytes = 32}, {}};
  problem.machines = {{}, {}};
  Profile profile = problem.profile();
  profile.devices[0].codecs["none"] = {4, /*encode_s_per_float=*/2, /*decode_s_per_float=*/3};
  const auto cost = CostModel::make(problem.model(), problem.cluster(), profile, 1, {});
  ASSERT_TRUE(cost.ok());
  const BoundarySize size = cost->boundary(0, 1);
  EXPECT_EQ(cost->encode_s(0, size, kHalf), 8 * 2);
  EXPECT_EQ(cost->decode_s(0, size, kHalf), 8 * 3);
  EXPECT_EQ(cost->boundary_before_s(0, size, "none"), (50 + 8) * 2 + 50 * 3);
  EXPECT_EQ(cost->boundary_behind_s(0, size, "none"), 50 * 2 + (50 + 8) * 3);
}

// Including the allocator's overhead.
std::int64_t resident(std::int64_t bytes) {
  return bytes + bytes * 4 / 100;
}

TEST(CostModel, CountsMemoryOfParametersAndMicroBatchesInFlight) {
  const auto cost = two_layers().cost();
  ASSERT_TRUE(cost.ok());
  // Value, gradient and two moments; three saved micro-batches; five buffers of the boundary.
  EXPECT_EQ(cost->memory_bytes(0, 0, 1, 1, 3), resident(1000 * 4 * 4 + 3 * 100 + 5 * 50 * 4));
  EXPECT_EQ(cost->memory_bytes(0, 0, 2, 1, 1), resident(3000 * 4 * 4 + 300));
}

RC_GTEST_PROP(CostModel, NeedsTheMemoryThatTheOracleCounts, ()) {
  const Problem problem = random_problem();
  const StepShape shape{*rc::gen::inRange(1, 4), 8};
  const int layers = static_cast<int>(problem.layers.size());
  const int first = *rc::gen::inRange(0, layers);
  const int last = *rc::gen::inRange(first + 1, layers + 1);
  const int held = *rc::gen::inRange(1, 9);
  const bool recompute = *rc::gen::arbitrary<bool>();
  const auto oracle_bytes = static_cast<std::int64_t>(
      Oracle(problem, shape).memory_bytes({{0}, first, last, recompute}, held));
  RC_ASSERT(problem.cost()->memory_bytes(0, first, last, shape.micro_batch, held, recompute) ==
            oracle_bytes);
}

TEST(CostModel, CountsACopyOfTiedParametersOnTheOtherRank) {
  const Problem problem = two_layers();
  ModelSpec model = problem.model();
  tie(model);
  const auto cost =
      CostModel::make(model, problem.cluster(), problem.profile(), 1, {.moments_per_parameter = 2});
  ASSERT_TRUE(cost.ok());
  EXPECT_EQ(cost->sizes().tied_parameters(), 1000);
  EXPECT_EQ(cost->sizes().reduced_parameters(0, 1), 0);
  EXPECT_EQ(cost->sizes().reduced_parameters(1, 2), 2000);
  EXPECT_EQ(cost->sizes().reduced_parameters(0, 2), 2000);
  // The second use has its own values and gradients.
  EXPECT_EQ(cost->memory_bytes(0, 0, 2, 1, 1), resident(3000 * 4 * 4 + 1000 * 2 * 4 + 300));
  EXPECT_EQ(cost->memory_bytes(1, 1, 2, 1, 1),
            resident((2000 + 1000) * 4 * 4 + 2 * 4000 + 200 + 3 * 200));
}

// With products in bf16 or fp16.
TEST(CostModel, CountsRoundedCopiesOfParameters) {
  const Problem problem = two_layers();
  ModelSpec model = problem.model();
  tie(model);
  Profile profile = problem.profile();
  for (DeviceProfile& device : profile.devices) device.rounded_bytes_per_parameter = 2;
  const auto cost =
      CostModel::make(model, problem.cluster(), profile, 1, {.moments_per_parameter = 2});
  ASSERT_TRUE(cost.ok());
  EXPECT_EQ(cost->memory_bytes(0, 0, 2, 1, 1),
            resident(3000 * (4 * 4 + 2) + 1000 * (2 * 4 + 2) + 300));
}

TEST(CostModel, SplitsTheMemoryOfAMachineOverItsDevices) {
  const Problem problem = two_layers();
  Cluster cluster = problem.cluster();
  cluster.machines[0].devices = {"cpu", "cpu"};
  cluster.machines[1].memory_gib = 2;
  const auto cost =
      CostModel::make(problem.model(), cluster, problem.profile(), 3, {.moments_per_parameter = 2});
  ASSERT_TRUE(cost.ok());
  EXPECT_EQ(cost->slots()[1].memory_bytes, 1 << 19);
  EXPECT_EQ(cost->slots()[2].memory_bytes, std::int64_t{2} << 30);
  EXPECT_EQ(cost->slots()[0].threads, 3);
}

// Each device has its own memory.
TEST(CostModel, SplitsTheMemoryOfADeviceOverTheProcessesOnIt) {
  const Problem problem = two_layers();
  Cluster cluster = problem.cluster();
  cluster.machines[0].devices = {"cuda:0", "cuda:1", "cuda:0"};
  Profile profile = problem.profile();
  profile.devices[0].device = "cuda:0";
  profile.devices.push_back(profile.devices[0]);
  profile.devices.back().device = "cuda:1";
  const auto cost =
      CostModel::make(problem.model(), cluster, profile, 3, {.moments_per_parameter = 2});
  ASSERT_TRUE(cost.ok());
  EXPECT_EQ(cost->slots()[0].memory_bytes, 1 << 19);
  EXPECT_EQ(cost->slots()[1].memory_bytes, 1 << 20);
  EXPECT_EQ(cost->slots()[2].memory_bytes, 1 << 19);
}

// Three machines, the first with two devices; 12,000 bytes of gradient.
Result<CostModel> three_machines(const std::string& gradient_codec) {
  Problem problem = two_layers();
  problem.machines.push_back(problem.machines[1]);
  Cluster cluster = problem.cluster();
  cluster.local = {1e5, 0.25};
  cluster.machines[0].devices = {"cpu", "cpu"};
  Profile profile = problem.profile();
  for (DeviceProfile& device : profile.devices) device.codecs["fp16"] = {2, 0, 0};
  return CostModel::make(problem.model(), cluster, profile, 1, {.moments_per_parameter = 2},
                         gradient_codec);
}

TEST(CostModel, SumsOverReplicasInsideMachinesAndThenBetweenThem) {
  const auto cost = three_machines("none");
  ASSERT_TRUE(cost.ok());
  const auto reduce_s = [&](const std::vector<int>& slots) {
    return cost->allreduce_time(slots, cost->sizes().reduced_parameters(0, 2)).all_s;
  };
  const double inside_s = 2 * (0.25 + 12'000 / 1e5);
  EXPECT_DOUBLE_EQ(reduce_s({1}), 0);
  EXPECT_DOUBLE_EQ(reduce_s({0, 1}), inside_s);
  EXPECT_DOUBLE_EQ(reduce_s({0, 2}), 0.5 + 12'000 / 1e3);
  EXPECT_DOUBLE_EQ(reduce_s({0, 1, 2}), inside_s + 0.5 + 12'000 / 1e3);
  EXPECT_DOUBLE_EQ(reduce_s({0, 1, 2, 3}), inside_s + 2 * (0.5 + 8'000 / 1e3));
}

TEST(CostModel, CountsTheBytesOfTheGradientCodecBetweenMachinesOnly) {
  const auto cost = three_machines("fp16");
  ASSERT_TRUE(cost.ok());
  EXPECT_DOUBLE_EQ(
      cost->allreduce_time(std::vector{0, 1}, cost->sizes().reduced_parameters(0, 2)).all_s,
      2 * (0.25 + 12'000 / 1e5));
  EXPECT_DOUBLE_EQ(
      cost->allreduce_time(std::vector{0, 2}, cost->sizes().reduced_parameters(0, 2)).all_s,
      0.5 + 6'000 / 1e3);
  EXPECT_FALSE(three_machines("int8").ok()) << "it was not measured";
}

TEST(CostModel, TellsThePartsOfBackwardApartWhereTheyWereMeasured) {
  Problem problem = two_layers();
  const auto joint = problem.cost();
  ASSERT_TRUE(joint.ok());
  EXPECT_FALSE(joint->check_split().ok());
  EXPECT_DOUBLE_EQ(joint->backward_input_s(0, 0, 2, 3), joint->backward_s(0, 0, 2, 3));
  for (LayerSketch& layer : problem.layers) layer.queued_bytes = 100;
  const auto split = problem.cost();
  ASSERT_TRUE(split.ok() && split->check_split().ok());
  EXPECT_DOUBLE_EQ(split->backward_input_s(0, 0, 2, 3), split->backward_s(0, 0, 2, 3) / 2);
  EXPECT_DOUBLE_EQ(joint->backward_weight_s(0, 0, 2, 3), 0);
  EXPECT_DOUBLE_EQ(split->backward_weight_s(0, 0, 2, 3), split->backward_s(0, 0, 2, 3) / 2);
  EXPECT_DOUBLE_EQ(split->backward_input_s(0, 0, 2, 3, true),
                   split->backward_s(0, 0, 2, 3) / 2 + split->forward_s(0, 0, 2, 3));
}

TEST(CostModel, CountsWhatQueuedWeightPartsKeep) {
  Problem problem = two_layers();
  for (LayerSketch& layer : problem.layers) layer.queued_bytes = 100;
  const auto cost = problem.cost();
  ASSERT_TRUE(cost.ok());
  const auto bytes = [&](int queued) { return cost->memory_bytes(0, 0, 2, 3, 1, false, queued); };
  // 600 bytes of three samples in two layers, with 4 % on top; both sums are rounded down.
  EXPECT_NEAR(static_cast<double>(bytes(4) - bytes(0)), 4 * 600 * 1.04, 1);
}

TEST(CostModel, NamesTheMachineThatWasNotMeasured) {
  const Problem problem = two_layers();
  Profile profile = problem.profile();
  profile.devices.pop_back();
  const auto cost =
      CostModel::make(problem.model(), problem.cluster(), profile, 1, {.moments_per_parameter = 2});
  ASSERT_FALSE(cost.ok());
  EXPECT_EQ(cost.error().what, "no profile of m1/cpu");
  EXPECT_NE(cost.error().remedy.find("motley profile"), std::string::npos);
}

TEST(CostModel, NamesTheLayerThatWasNotMeasured) {
  const Problem problem = two_layers();
  Profile profile = problem.profile();
  profile.devices[1].layers.erase("l1");
  const auto cost =
      CostModel::make(problem.model(), problem.cluster(), profile, 1, {.moments_per_parameter = 2});
  ASSERT_FALSE(cost.ok());
  EXPECT_EQ(cost.error().what, "the profile of m1/cpu lacks layer 'l1'");
}

}  // namespace
}  // namespace motley
