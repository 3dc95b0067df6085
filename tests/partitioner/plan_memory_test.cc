#include "partitioner/cost/plan_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "models/spec/layer_memory.h"
#include "partitioner/cost/stage_table.h"
#include "partitioner/search/planner.h"
#include "partitioner/simulate/simulator.h"
#include "pipeline/schedule/schedules.h"
#include "pipeline/schedule/validate.h"
#include "plan/assign_micro_batches.h"
#include "tests/partitioner/random_step.h"

namespace motley {
namespace {

std::vector<std::size_t> chunks_of(const Plan& plan, Rank rank) {
  std::vector<std::size_t> chunks;
  for (std::size_t c = 0; c < plan.chunks.size(); ++c) {
    if (plan.chunks[c].is_on(rank)) chunks.push_back(c);
  }
  return chunks;
}

// A random step whose layers save data, and queries about it.
struct MemoryCase {
  RandomStep step;
  CostModel cost;
  std::vector<int> slots;
  Schedule schedule;
  ScheduleStats stats;

  [[nodiscard]] std::vector<std::int64_t> peaks() const {
    return peak_memory_bytes(schedule, step.plan, cost, slots);
  }

  // The memory of a process that holds only this chunk.
  [[nodiscard]] std::int64_t bytes_of(std::size_t c,
                                      Rank rank,
                                      int in_flight,
                                      int queued_weights) const {
    const ChunkPlan& chunk = step.plan.chunks[c];
    return cost.memory_bytes(slots[rank.index()], chunk.first_layer,
                             chunk.first_layer + chunk.layer_count, step.plan.micro_batch,
                             in_flight, chunk.recompute, queued_weights);
  }
};

MemoryCase random_case() {
  RandomStep step = random_step(2);
  for (Rank rank{0}; rank.value < step.plan.rank_count(); ++rank.value) {
    RC_PRE(!chunks_of(step.plan, rank).empty());
  }
  for (DeviceProfile& device : step.profile.devices) {
    device.baseline_bytes = *rc::gen::inRange(0, 1000);
    for (auto& [signature, samples] : device.layers) {
      samples[0].saved_bytes = *rc::gen::inRange(0, 10'000);
      samples[0].workspace_bytes = *rc::gen::inRange(0, 10'000);
      samples[0].split->queued_bytes = *rc::gen::inRange(0, 10'000);
    }
  }
  auto cost =
      CostModel::make(step.model, step.cluster, step.profile, 1, {.moments_per_parameter = 2});
  const auto slots = slots_of_ranks(step.plan, *cost);
  const bool tied = tied_across_ranks(step.model, step.plan);
  const auto schedule = make_schedule(step.plan, tied);
  const auto stats = validate_schedule(*schedule, tied);
  return {std::move(step), *std::move(cost), *slots, *schedule, *stats};
}

RC_GTEST_PROP(PlanMemory, IsWhatTheChunkKeepsWhereARankHasOne, ()) {
  const MemoryCase c = random_case();
  const Plan& plan = c.step.plan;
  const std::vector<std::int64_t> peaks = c.peaks();
  for (Rank rank{0}; rank.value < plan.rank_count(); ++rank.value) {
    const std::vector<std::size_t> chunks = chunks_of(plan, rank);
    if (chunks.size() != 1) continue;
    // Of the replica that holds most, so an upper bound for others.
    const int in_flight = c.stats.peak_in_flight[chunks[0]];
    const int queued = c.stats.peak_queued_weights[chunks[0]];
    RC_ASSERT(peaks[rank.index()] <= c.bytes_of(chunks[0], rank, in_flight, queued));
    if (plan.chunks[chunks[0]].replicas.size() > 1) continue;
    RC_ASSERT(peaks[rank.index()] >= c.bytes_of(chunks[0], rank, in_flight, 0));
    if (plan.schedule != "split") {
      RC_ASSERT(peaks[rank.index()] == c.bytes_of(chunks[0], rank, in_flight, 0));
    }
  }
}

// Chunks of one rank do not reach their peaks at the same time.
RC_GTEST_PROP(PlanMemory, IsAtMostTheSumOfItsChunks, ()) {
  const MemoryCase c = random_case();
  const Plan& plan = c.step.plan;
  const std::vector<std::int64_t> peaks = c.peaks();
  for (Rank rank{0}; rank.value < plan.rank_count(); ++rank.value) {
    std::int64_t sum = 0;
    std::int64_t most = 0;
    for (const std::size_t chunk : chunks_of(plan, rank)) {
      const std::int64_t bytes = c.bytes_of(chunk, rank, c.stats.peak_in_flight[chunk],
                                            c.stats.peak_queued_weights[chunk]);
      sum += bytes + 1;  // for rounding
      most = std::max(most, c.bytes_of(chunk, rank, 0, 0));
    }
    RC_ASSERT(peaks[rank.index()] <= sum);
    RC_ASSERT(peaks[rank.index()] >= most);
  }
}

// Each machine stores a residual for each value that it encodes in an all-reduce: of its own part,
// or of the result.
RC_GTEST_PROP(PlanMemory, CountsWhatMessagesOfSumsLeaveOut, ()) {
  const MemoryCase c = random_case();
  const Plan& plan = c.step.plan;
  const auto peaks_with = [&](const std::string& codec, bool error_feedback) {
    const auto cost =
        CostModel::make(c.step.model, c.step.cluster, c.step.profile, 1,
                        {.moments_per_parameter = 2, .has_residual = error_feedback}, codec);
    return peak_memory_bytes(c.schedule, plan, *cost, c.slots);
  };
  RC_ASSERT(peaks_with("none", true) == c.peaks());
  const std::vector<std::int64_t> forgets = peaks_with("fp16", false);
  RC_ASSERT(forgets == c.peaks());
  const std::vector<std::int64_t> keeps = peaks_with("fp16", true);

  std::int64_t sent_values = 0;  // by all machines
  for (const ChunkPlan& chunk : plan.chunks) {
    std::set<std::string> machines;
    for (const Replica& replica : chunk.replicas) {
      machines.insert(plan.ranks[replica.rank.index()].machine);
    }
    if (machines.size() == 1) continue;
    sent_values +=
        std::ssize(machines) *
        c.cost.sizes().reduced_parameters(chunk.first_layer, chunk.first_layer + chunk.layer_count);
  }
  std::int64_t more_bytes = 0;
  for (std::size_t r = 0; r < keeps.size(); ++r) {
    RC_ASSERT(keeps[r] >= forgets[r]);
    more_bytes += keeps[r] - forgets[r];
  }
  const std::int64_t expected = CostModel::MemoryParts::resident(sent_values * 4);
  RC_ASSERT(std::abs(more_bytes - expected) <= plan.rank_count() + 1);  // for rounding
}

TEST(PlanMemory, CountsTheMomentumOfSendersWithTopk) {
  EXPECT_EQ(feedback_per_encoded({}, "none"), 0);
  EXPECT_EQ(feedback_per_encoded({}, "int8"), 1);
  EXPECT_EQ(feedback_per_encoded({.has_residual = false}, "int8"), 0);
  EXPECT_EQ(feedback_per_encoded({.velocity = true}, "int8"), 1);
  EXPECT_EQ(feedback_per_encoded({}, "topk(0.01)"), 1);
  EXPECT_EQ(feedback_per_encoded({.velocity = true}, "topk(0.01)|fp16"), 2);
}

// Layers with their own and shared constants, with parameters and statistics, and with or without
// a tied parameter.
ModelSpec model_with_constants() {
  ModelSpec model;
  model.family = "mlp";
  model.tokens_per_sample = 1;
  const int layers = *rc::gen::inRange(1, 7);
  for (int l = 0; l < layers; ++l) {
    LayerSpec& layer = model.layers.emplace_back();
    layer.name = layer.kind = layer.signature = fmt::format("l{}", l);
    layer.parameters.push_back({layer.name + ".w", {*rc::gen::inRange(1, 100)}, {}, true, false});
    if (*rc::gen::arbitrary<bool>()) {
      layer.parameters.push_back({layer.name + ".mean", {5}, {}, false, false, 0.1});
    }
    for (int name = 0; name < 4; ++name) {
      if (*rc::gen::arbitrary<bool>()) continue;
      layer.constants.push_back({fmt::format("c{}", name), 10 << name, 40 << name});
    }
    layer.constants.push_back({layer.name + ".frozen", 7, 28});
  }
  if (layers > 1 && *rc::gen::arbitrary<bool>()) tie(model);
  return model;
}

// models/spec defines the persistent memory of layers; the planner computes it in another way.
RC_GTEST_PROP(PlanMemory, CountsWhatLastsAsTheLayersSay, ()) {
  const ModelSpec model = model_with_constants();
  const int layers = static_cast<int>(model.layers.size());
  DeviceProfile device;
  device.machine = "m0";
  device.device = "cpu";
  for (const LayerSpec& layer : model.layers) {
    device.layers[layer.signature] = {{.micro_batch = 1, .saved_bytes = 1000}};
  }
  Cluster cluster;
  cluster.machines.emplace_back().name = "m0";
  const int moments = *rc::gen::inRange(0, 3);
  const CostModel cost =
      CostModel::make(model, cluster, {{device}}, 1, {.moments_per_parameter = moments}).value();
  for (int first = 0; first < layers; ++first) {
    for (int last = first + 1; last <= layers; ++last) {
      const PersistentMemory lasting = persistent_memory(model, first, last, moments);
      const CostModel::MemoryParts parts = cost.fixed_memory(0, first, last, 1);
      RC_ASSERT(parts.constant_bytes == lasting.constant_bytes);
      RC_ASSERT(parts.value_bytes == lasting.value_bytes);
      RC_ASSERT(parts.gradient_bytes == lasting.gradient_bytes);
      RC_ASSERT(parts.moment_bytes == lasting.moment_bytes);
    }
  }
}

// If a layer saves its output and the next one saves its input, this is one tensor.
TEST(PlanMemory, CountsOnceWhatTwoLayersKeep) {
  Problem problem;
  problem.layers.assign(3, {.parameters = 1, .output_floats = 10, .saved_bytes = 100});
  problem.machines = {{}};
  ModelSpec model = problem.model();
  model.layers[0].keeps_output = model.layers[1].keeps_input = true;
  model.layers[1].keeps_output = true;  // but the last layer does not save its input
  const auto cost =
      CostModel::make(model, problem.cluster(), problem.profile(), 1, {.moments_per_parameter = 0});
  const StageTable table(*cost, {.micro_batch = 2});
  const auto saved = [&](int first, int last) {
    const std::int64_t bytes = cost->memory_parts(0, first, last, 2).saved_bytes;
    EXPECT_EQ(table.memory_parts(0, first, last).saved_bytes, bytes);
    return bytes;
  };
  EXPECT_EQ(saved(0, 1), 200);
  EXPECT_EQ(saved(0, 2), 400 - 2 * 10 * 4);
  EXPECT_EQ(saved(1, 3), 400);
  EXPECT_EQ(saved(0, 3), 600 - 2 * 10 * 4);
}

TEST(PlanMemory, NamesEachPlaceOnce) {
  Problem problem;
  problem.layers = {{.parameters = 100, .saved_bytes = 1000}};
  problem.machines = {{}};
  ModelSpec model = problem.model();
  model.layers[0].constants = {{"table", 50, 400}};
  const auto cost = CostModel::make(model, problem.cluster(), problem.profile(), 1,
                                    {.moments_per_parameter = 2, .data_bytes = 77});
  Plan plan;
  plan.ranks = {{.machine = "m0", .device = "cpu"}};
  plan.chunks = {{.layer_count = 1, .replicas = {{Rank{0}, 1}}}};
  plan.micro_batches = 1;
  const auto schedule =
      parse_schedule("schedule 1f1b micro_batches=1 owners=0\nrank 0: F0.0 B0.0 V S", "s");
  ASSERT_TRUE(schedule.ok());
  const RankMemory memory = peak_memory(*schedule, plan, *cost, {0}).front();
  EXPECT_EQ(memory.constants, 400);
  EXPECT_EQ(memory.values, 400);
  EXPECT_EQ(memory.gradients, 400);
  EXPECT_EQ(memory.moments, 800);
  EXPECT_EQ(memory.data, 77);
  EXPECT_EQ(memory.micro_batches, 1000);
  EXPECT_EQ(memory.allocator, CostModel::MemoryParts::allocator_bytes(400 + 1600 + 77 + 1000));
  EXPECT_EQ(memory.bytes(), peak_memory_bytes(*schedule, plan, *cost, {0}).front());
}

// 100 bytes per micro-batch, 60 per delayed weight part; the schedule's order is written out.
TEST(PlanMemory, FollowsTheOrderOfTheSchedule) {
  Problem problem;
  problem.layers = {{.parameters = 0, .saved_bytes = 100, .queued_bytes = 60}};
  problem.machines = {{}};
  const auto cost = problem.cost();
  Plan plan;
  plan.ranks = {{.machine = "m0", .device = "cpu"}};
  plan.chunks = {{.layer_count = 1, .replicas = {{Rank{0}, 4}}}};
  plan.micro_batches = 4;
  const auto peak = [&](const std::string& actions) {
    const auto schedule =
        parse_schedule("schedule split micro_batches=4 owners=0\nrank 0: " + actions, "s");
    EXPECT_TRUE(schedule.ok());
    return peak_memory_bytes(*schedule, plan, *cost, {0}).front();
  };
  const auto resident = CostModel::MemoryParts::resident;
  EXPECT_EQ(peak("F0.0 B0.0 F0.1 B0.1 F0.2 B0.2 F0.3 B0.3 V S"), resident(100));
  EXPECT_EQ(peak("F0.0 F0.1 F0.2 B0.0 B0.1 B0.2 F0.3 B0.3 V S"), resident(300));
  EXPECT_EQ(peak("F0.0 F0.1 BI0.0 BI0.1 F0.2 BW0.0 BW0.1 BI0.2 BW0.2 F0.3 B0.3 V S"),
            resident(2 * 60 + 100));
  EXPECT_EQ(peak("F0.0 F0.1 BI0.0 BW0.0 BI0.1 F0.2 BI0.2 BW0.1 BW0.2 F0.3 B0.3 V S"),
            resident(200));
}

}  // namespace
}  // namespace motley
