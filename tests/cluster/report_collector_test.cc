#include "cluster/run_record/report_collector.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "plan/cluster.h"

namespace motley {
namespace {

// Two layers on two machines; their boundary has 10 floats per sample.
ModelSpec model() {
  ModelSpec model;
  model.layers.resize(2);
  model.layers[0].outputs = {{10}};
  return model;
}

Plan plan() {
  Plan plan;
  plan.ranks = {{"desktop", "cpu", 1, 0.3, 1000}, {"box", "cpu", 1, 0.2, 500}};
  plan.chunks = {{0, 1, {{Rank{0}, 4}}, "fp16"}, {1, 1, {{Rank{1}, 4}}}};
  plan.micro_batch = 2;
  plan.micro_batches = 4;
  plan.predicted_step_s = 0.4;
  return plan;
}

StepReport step(std::int64_t number, double compute_s) {
  return {.step = number,
          .step_s = 2 * compute_s,
          .times = {.compute_s = compute_s, .wait_s = {{compute_s / 2}}},
          .wire_bytes = 160};
}

RunReport report_of(const ReportCollector& collector) {
  const auto report = collector.report(plan(), model());
  if (!report.ok()) ADD_FAILURE() << describe(report.error());
  return report.ok() ? *report : RunReport{};
}

RunReport example() {
  ReportCollector collector(2);
  for (std::int64_t number = 1; number <= 4; ++number) {
    collector.add_step(Rank{0}, step(number, number == 1 ? 9 : 0.25));
    collector.add_step(Rank{1}, step(number, 0.5));
  }
  collector.add_peak(Rank{1}, 777);
  return report_of(collector);
}

TEST(ReportCollector, TakesMediansWithoutTheFirstStep) {
  const RunReport report = example();
  EXPECT_EQ(report.first_step, 1);
  EXPECT_EQ(report.end.last_step, 4);
  EXPECT_EQ(report.measured_steps, 3);
  EXPECT_EQ(report.ranks[0].compute_s.measured, 0.25);
  EXPECT_EQ(report.ranks[0].compute_s.predicted, 0.3);
  EXPECT_EQ(report.ranks[1].wait_s, 0.25);
  EXPECT_EQ(report.step_s.measured, 1);
  EXPECT_EQ(report.step_s.predicted, 0.4);
}

TEST(ReportCollector, MeasuresTheWaitForSumsApart) {
  ReportCollector collector(2);
  for (std::int64_t number = 1; number <= 3; ++number) {
    StepReport waiting = step(number, 0.5);
    waiting.times.wait_s.of(WaitCause::kSum) = 0.125;
    for (const Rank rank : {Rank{0}, Rank{1}}) collector.add_step(rank, waiting);
  }
  const RunReport report = report_of(collector);
  EXPECT_EQ(report.ranks[1].allreduce_wait_s, 0.125);
  EXPECT_EQ(report.ranks[1].wait_s, 0.375);
}

TEST(ReportCollector, MeasuresThePeakOfARankThatKnowsIt) {
  const RunReport report = example();
  EXPECT_EQ(report.ranks[0].memory_bytes.measured, 0);
  EXPECT_EQ(report.ranks[1].memory_bytes.measured, 777);
}

TEST(ReportCollector, NamesVirtualDevices) {
  Plan simulated = plan();
  for (RankPlan& rank : simulated.ranks) rank.device = "virtual";
  const auto report = ReportCollector(2).report(simulated, model());
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->ranks[1].name, "stage 1 (box, virtual)");
  EXPECT_FALSE(capabilities_of(*report).computes);
}

TEST(ReportCollector, CountsTheBytesOfABoundaryBothWays) {
  const RunReport report = example();
  ASSERT_EQ(report.links.size(), 1U);
  EXPECT_EQ(report.links[0].codec, "fp16");
  EXPECT_EQ(report.links[0].original_bytes, 2 * 4 * 20 * 4);
  EXPECT_EQ(report.links[0].payload_bytes, 2 * 4 * 20 * 2);
  // Four messages of 20 fp16 values in each direction, and a vote of 40 + 12 bytes. Its answer has
  // it and the vote of rank 0, which is 24 bytes longer, each after its length. Every message has
  // a header of 64 bytes. The targets are of 0 tokens.
  EXPECT_EQ(report.ranks[0].sent_bytes.predicted,
            4 * (64 + 40) + 4 * 64 + (64 + (4 + 76) + (4 + 52)));
  EXPECT_EQ(report.ranks[1].sent_bytes.predicted, 4 * (64 + 40) + (64 + 52));
  EXPECT_EQ(report.ranks[0].sent_bytes.measured, 160);
}

// Three replicas of a layer, two of them on one machine: these two first reduce their halves of
// the gradient, then each exchanges its half with the other machine.
TEST(ReportCollector, PredictsWhatSumsSendAsTheirCodecMakesIt) {
  ModelSpec one_layer;
  one_layer.layers.resize(1);
  one_layer.layers[0].parameters = {{"weight", {16, 64}}};
  Plan replicas = plan();
  replicas.ranks.push_back({"box", "cpu", 1, 0.2, 500});
  replicas.chunks = {{0, 1, {{Rank{0}, 2}, {Rank{1}, 1}, {Rank{2}, 1}}}};
  for (const auto& [chain, half] : std::map<std::string, double>{
           {"none", 512 * 4}, {"int8", 4 * (4 + 128)}, {"int4", 4 * (4 + 64)}}) {
    replicas.gradient_codec = chain;
    const auto report = ReportCollector(3).report(replicas, one_layer);
    ASSERT_TRUE(report.ok()) << describe(report.error());
    // Rank 0 votes for the layer and sends the common factors; all ranks send a hash of their
    // copies.
    const double answer = 64 + (4 + 40 + 12 + 24 + 8) + 2 * (4 + 40 + 8);
    EXPECT_EQ(report->ranks[0].sent_bytes.predicted, 2 * (64 + half) + 2 * answer) << chain;
    for (const std::size_t rank : {1, 2}) {
      const double votes = 64 + 40 + 8;
      EXPECT_EQ(report->ranks[rank].sent_bytes.predicted, 2 * (64 + 512 * 4) + (64 + half) + votes)
          << chain;
    }
  }
}

TEST(ReportCollector, ForgetsTheOldStepsOfALongRun) {
  ReportCollector collector(2);
  for (std::int64_t number = 1; number <= 10'000; ++number) {
    for (const int rank : {0, 1}) {
      collector.add_step(Rank{rank}, step(number, number <= 5000 ? 1 : 2));
    }
  }
  const RunReport report = report_of(collector);
  EXPECT_EQ(report.measured_steps, 4096);
  EXPECT_EQ(report.ranks[0].compute_s.measured, 2);
}

TEST(ReportCollector, OneStepMeasuresNothing) {
  ReportCollector collector(2);
  for (const int rank : {0, 1}) collector.add_step(Rank{rank}, step(1, 1));
  EXPECT_EQ(report_of(collector).step_s.measured, 0);
}

}  // namespace
}  // namespace motley
