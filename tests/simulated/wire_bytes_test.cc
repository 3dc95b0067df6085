// The bytes sent in a step, computed in three ways: by hand, by the planner and the report
// (StepBytes, the simulator's messages), and counted on real frames through the real codecs.
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "compression/make_codec.h"
#include "partitioner/cost/step_bytes.h"
#include "partitioner/cost/virtual_profile.h"
#include "partitioner/search/planner.h"
#include "partitioner/simulate/step_program.h"
#include "pipeline/schedule/schedules.h"
#include "tests/simulated/simulated_rank.h"
#include "tests/support/counting_transport.h"
#include "tests/support/dealt_plan.h"
#include "tests/support/forwarding_transport.h"
#include "tests/support/rank_group.h"

namespace motley {
namespace {

constexpr VirtualSpeed kSpeed{.tokens_per_s = 1e6};

// 15 tokens of 40 floats per sample: 600 floats at each boundary, not a multiple of a quantising
// codec's block of 128. The tied parameter has 2,000 x 40 values: more than a bucket of an
// all-reduce.
ModelSpec small_model() {
  return six_layers(/*width=*/40, /*context=*/15, /*vocab=*/2000);
}

// The same with exact values: 77 bytes per sample after the second layer, 40 after the third.
ModelSpec with_exact_values() {
  ModelSpec model = small_model();
  model.layers[1].exact_outputs = {{Dtype::kBool, {7, 11}}};
  model.layers[2].exact_outputs = {{Dtype::kInt64, {3}}, {Dtype::kFloat32, {4}}};
  return model;
}

struct Layout {
  std::vector<std::string> machines;         // [Rank]
  std::vector<std::vector<Replica>> chunks;  // [ChunkId]
  std::string codec = "none";                // of all boundaries
  std::string gradient_codec = "none";
};

// Eight micro-batches.
Plan plan_of(const ModelSpec& model, const Layout& layout) {
  Plan plan = dealt_plan(model, layout.chunks);
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    plan.ranks[r] = {.machine = layout.machines[r], .device = "virtual"};
  }
  for (ChunkPlan& chunk : plan.chunks) chunk.codec = layout.codec;
  plan.micro_batches = 8;
  plan.gradient_codec = layout.gradient_codec;
  return plan;
}

// Ranks that share memory offer it to each other at the end of a first step, with messages that
// are not part of the training and not predicted.
class UnsharedTransport final : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;

  [[nodiscard]] bool shares_memory(Rank /*peer*/) const override { return false; }
};

// The bytes that each rank passed to its transport in one step, [Rank].
std::vector<double> really_sent(const Plan& plan, const ModelSpec& model) {
  std::vector<double> sent(plan.ranks.size(), 0);
  RankGroup group("inproc", plan.rank_count());
  group.run([&](Rank self) {
    UnsharedTransport unshared(group.at(self));
    CountingTransport transport(unshared, plan.rank_count());
    SimulatedRank rank(plan, model, self, kSpeed, transport);
    rank.run(1);
    const auto& frames = transport.message_bytes();
    sent[self.index()] =
        static_cast<double>(std::accumulate(frames.begin(), frames.end(), std::uint64_t{0}));
    EXPECT_EQ(static_cast<double>(rank.link().wire_bytes()), sent[self.index()]);
    const auto to = rank.link().sent_bytes();
    EXPECT_EQ(std::accumulate(to.begin(), to.end(), std::uint64_t{0}), rank.link().wire_bytes());
  });
  return sent;
}

StepBytes predicted_bytes(const Plan& plan, const ModelSpec& model) {
  return {plan, ModelSizes(model),
          [](Rank /*from*/, std::int64_t values, const std::string& codec) {
            return static_cast<double>(
                make_codec(codec).value()->bytes_max(static_cast<std::size_t>(values)));
          }};
}

// The report's prediction, from the codecs alone, [Rank].
std::vector<double> predicted(const Plan& plan, const ModelSpec& model) {
  return sent_bytes(plan, predicted_bytes(plan, model));
}

// The same, from the predictions for each pair, [Rank].
std::vector<double> predicted_of_pairs(const Plan& plan, const ModelSpec& model) {
  std::vector<double> sent(plan.ranks.size(), 0);
  for (const auto& [pair, bytes] : pair_bytes(plan, predicted_bytes(plan, model))) {
    EXPECT_NE(pair.first, pair.second);
    sent[pair.first.index()] += bytes;
  }
  return sent;
}

// The bytes of all messages of the simulated step, [Rank]. The profile has the same meaningless
// rate for every codec, so no size can come from it.
std::vector<double> simulated(const Plan& plan, const ModelSpec& model) {
  Cluster cluster;
  cluster.machines.clear();
  Profile profile;
  std::vector<int> slots;  // [Rank]
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    Machine& machine = cluster.machines.emplace_back();
    machine.name = "rank" + std::to_string(r);
    machine.devices = {"virtual"};
    DeviceProfile device = virtual_profile(model, kSpeed, virtual_job(eight_samples(), model), {1});
    device.machine = machine.name;
    device.device = "virtual";
    for (const char* codec : {"none", "fp16", "int8", "int4"}) {
      device.codecs[codec] = {.bytes_per_float = 17};
    }
    profile.devices.push_back(std::move(device));
    slots.push_back(static_cast<int>(r));
  }
  const auto cost = CostModel::make(model, cluster, profile, 1, {.moments_per_parameter = 2},
                                    plan.gradient_codec);
  EXPECT_TRUE(cost.ok()) << describe(cost.error());
  const auto schedule = make_schedule(plan, tied_across_ranks(model, plan));
  std::vector<double> sent(plan.ranks.size(), 0);
  const StepProgram program = compile_step(*schedule, plan, *cost, slots, std::nullopt);
  for (const StepMessage& message : program.messages) sent[message.from] += message.bytes;
  return sent;
}

void expect_agreement(const Layout& layout, const ModelSpec& model = small_model()) {
  const Plan plan = plan_of(model, layout);
  const std::vector<double> counted = really_sent(plan, model);
  const std::vector<double> planned = predicted(plan, model);
  const std::vector<double> of_pairs = predicted_of_pairs(plan, model);
  const std::vector<double> timed = simulated(plan, model);
  for (std::size_t r = 0; r < counted.size(); ++r) {
    SCOPED_TRACE("rank " + std::to_string(r) + ", " + layout.codec + ", " + layout.gradient_codec);
    EXPECT_NEAR(planned[r], counted[r], 1e-6);
    EXPECT_NEAR(of_pairs[r], counted[r], 1e-6);
    EXPECT_NEAR(timed[r], counted[r], 1e-6);
  }
}

// The bytes of 600 floats in each codec (docs/formats/frame.md): int8 and int4 have five blocks of
// 128; int4 pads the last one.
const std::map<std::string, double> kBoundaryBytes = {
    {"none", 4 * 600}, {"fp16", 2 * 600}, {"int8", 5 * 4 + 600}, {"int4", 5 * (4 + 64)}};

TEST(WireBytes, OfAPipelineAreThoseCountedByHand) {
  const ModelSpec model = small_model();
  for (const auto& [codec, payload] : kBoundaryBytes) {
    const Plan plan = plan_of(model, {{"a", "b"}, {{{Rank{0}, 8}}, {{Rank{1}, 8}}}, codec, "none"});
    // Targets are 15 numbers of 4 bytes. The tied parameter's 80,000 values are sent as a bucket
    // of 65,536 and one of 14,464. A vote has 40 bytes, 12 for each of three layers, 8 for the
    // copy of the tied parameter, and rank 0's three factors of 8. The result has both votes, each
    // after its length.
    const double tied = (64 + 65'536 * 4) + (64 + 14'464 * 4);
    const std::vector<double> by_hand = {
        8 * (64 + payload) + 8 * (64 + 15 * 4) + tied + (64 + 2 * 4 + 108 + 84),
        8 * (64 + payload) + tied + (64 + 84)};
    EXPECT_EQ(really_sent(plan, model), by_hand) << codec;
    EXPECT_EQ(predicted(plan, model), by_hand) << codec;
    EXPECT_EQ(simulated(plan, model), by_hand) << codec;
  }
}

// Exact values are never encoded, and are sent only forward.
TEST(WireBytes, OfExactValuesAreThoseOfOneDirection) {
  const ModelSpec model = with_exact_values();
  for (const auto& [codec, payload] : kBoundaryBytes) {
    const Layout layout{{"a", "b"}, {{{Rank{0}, 8}}, {{Rank{1}, 8}}}, codec, "none"};
    const Plan plan = plan_of(model, layout);
    ASSERT_EQ(plan.chunks[1].first_layer, 3);
    const std::vector<double> without = predicted(plan, small_model());
    const std::vector<double> expected = {without[0] + 8 * 40, without[1]};
    EXPECT_EQ(really_sent(plan, model), expected) << codec;
    EXPECT_EQ(predicted(plan, model), expected) << codec;
    EXPECT_EQ(simulated(plan, model), expected) << codec;
  }
}

TEST(WireBytes, OfExactValuesAgreeWithReplicasAndSeveralChunksOfARank) {
  for (const char* codec : {"none", "fp16", "int8", "int4"}) {
    expect_agreement({{"a", "b", "b"}, {{{Rank{0}, 8}}, {{Rank{1}, 3}, {Rank{2}, 5}}}, codec},
                     with_exact_values());
    expect_agreement({{"a", "b"}, {{{Rank{0}, 8}}, {{Rank{1}, 8}}, {{Rank{0}, 8}}}, codec},
                     with_exact_values());
  }
}

TEST(WireBytes, AgreeForEveryCodecOfAFixedSize) {
  for (const char* gradients : {"none", "fp16", "int8", "int4"}) {
    for (const auto& [codec, payload] : kBoundaryBytes) {
      // A pipeline whose second stage has replicas on two ranks of another machine.
      expect_agreement(
          {{"a", "b", "b"}, {{{Rank{0}, 8}}, {{Rank{1}, 3}, {Rank{2}, 5}}}, codec, gradients});
    }
    // Replicas of the whole model on two machines and on three, several ranks on some.
    expect_agreement({{"a", "b"}, {{{Rank{0}, 4}, {Rank{1}, 4}}}, "none", gradients});
    expect_agreement({{"a", "b", "b", "c"},
                      {{{Rank{0}, 2}, {Rank{1}, 2}, {Rank{2}, 1}, {Rank{3}, 3}}},
                      "none",
                      gradients});
    // The last chunk is on the first rank again.
    expect_agreement(
        {{"a", "b"}, {{{Rank{0}, 8}}, {{Rank{1}, 8}}, {{Rank{0}, 8}}}, "int8", gradients});
  }
}

TEST(WireBytes, OfACodecWithoutAFixedSizeAreBounded) {
  const ModelSpec model = small_model();
  for (const char* gradients : {"topk(0.1)|fp16", "int8|zstd(1)"}) {
    const Plan plan =
        plan_of(model, {{"a", "b"}, {{{Rank{0}, 4}, {Rank{1}, 4}}}, "none", gradients});
    const std::vector<double> counted = really_sent(plan, model);
    const std::vector<double> bound = predicted(plan, model);
    for (std::size_t r = 0; r < 2; ++r) EXPECT_LE(counted[r], bound[r]) << gradients;
  }
}

}  // namespace
}  // namespace motley
