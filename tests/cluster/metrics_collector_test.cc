#include "cluster/run_record/metrics_collector.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rapidcheck.h>

#include "base/json.h"

namespace motley {
namespace {

StepReport report(std::int64_t step) {
  return {.step = step,
          .outcome = {.loss = 2, .tokens = 100},
          .step_s = 0.5,
          .times = {.compute_s = 0.25, .wait_s = {{0.1}}},
          .wire_bytes = 10};
}

// The metrics of one step from these reports, one per rank.
Result<StepMetrics> account_of(const std::vector<StepReport>& reports) {
  MetricsCollector collector(static_cast<int>(reports.size()), 0.4);
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    auto added = collector.add(Rank{static_cast<std::int32_t>(rank)}, reports[rank]);
    if (!added) return added.error();
    if (*added) return **added;
  }
  return Error{};
}

TEST(Metrics, OfVirtualDevicesHaveNoLoss) {
  MetricsCollector collector(1, 0.4, {.is_computed = false});
  const auto metrics = collector.add(Rank{0}, report(1));
  ASSERT_TRUE(metrics.ok() && metrics->has_value());
  const Json json = metrics_to_json(**metrics);
  EXPECT_TRUE(json["virtual"].get<bool>());
  EXPECT_TRUE(json["loss"].is_null() && json["grad_norm"].is_null());
  EXPECT_EQ(json["tokens"], 100);
}

TEST(Metrics, AddUpWhatAddsUpAndTakeTheSlowestForTime) {
  StepReport slow = report(1);
  slow.step_s = 1.0;
  slow.times.wait_s = {{0.25, 0.25}};
  slow.wire_bytes = 7;
  const auto metrics = account_of({report(1), slow});
  ASSERT_TRUE(metrics.ok());
  EXPECT_EQ(metrics->step_s, 1.0);
  EXPECT_EQ(metrics->tokens_per_s(), 100.0);
  EXPECT_EQ(metrics->wire_bytes, 17U);
  EXPECT_EQ(metrics->bubble, 0.75);
  EXPECT_EQ(metrics->wait_s, (std::vector{0.1, 0.5}));
  ASSERT_EQ(metrics->ranks.size(), 2U);
  EXPECT_EQ(metrics->ranks[1].times.wait_s.of(WaitCause::kGradient), 0.25);
  EXPECT_EQ(metrics->wait_share(), 0.3);
  EXPECT_EQ(metrics->predicted_step_s, 0.4);
}

TEST(Metrics, SayWhoWaitedForWhatAndWhoSentWhom) {
  StepReport first = report(1);
  first.times.compute_s = 0.4;
  first.times.wait_s.of(WaitCause::kSum) = 0.2;
  first.memory_bytes = 4096;
  first.sent = {{Rank{1}, 10}};
  auto metrics = account_of({first, report(1)});
  ASSERT_TRUE(metrics.ok());
  metrics->time_s = 1.8e9;
  const Json json = metrics_to_json(*metrics);
  EXPECT_EQ(json["time"], 1.8e9);
  EXPECT_EQ(json["ranks"][0]["compute_s"], 0.4);
  EXPECT_EQ(json["ranks"][0]["memory_bytes"], 4096);
  EXPECT_EQ(json["ranks"][0]["wait_s"].dump(), R"({"activation":0.1,"sum":0.2})");
  EXPECT_EQ(json["links"].dump(), R"([{"from":0,"to":1,"bytes":10}])");
}

TEST(Metrics, RefuseBytesForARankThatIsNotThere) {
  StepReport strange = report(1);
  strange.sent = {{Rank{2}, 10}};
  const auto metrics = account_of({report(1), strange});
  ASSERT_FALSE(metrics.ok());
  EXPECT_EQ(metrics.error().code, ErrorCode::kPeer);
}

TEST(Metrics, SayWhereTheTimeWent) {
  StepReport idle = report(1);
  idle.step_s = 1;
  idle.times.compute_s = 0.5;
  idle.times.codec_s = 0.1;
  StepReport busy = idle;
  busy.times.compute_s = 0.75;
  busy.times.optimizer_s = 0.05;
  const auto metrics = account_of({idle, busy});
  ASSERT_TRUE(metrics.ok());
  EXPECT_EQ(metrics->bubble, 0.375);
  EXPECT_EQ(metrics->losses.imbalance, 0.125);
  EXPECT_EQ(metrics->losses.links_and_filling, 0.25);
  EXPECT_EQ(metrics->losses.codec, 0.1);
  EXPECT_EQ(metrics->losses.optimizer, 0.025);
}

TEST(Metrics, ComeWhenTheLastRankHasReported) {
  MetricsCollector collector(2, 0);
  EXPECT_FALSE(collector.add(Rank{1}, report(1))->has_value());
  EXPECT_FALSE(collector.add(Rank{1}, report(2))->has_value());
  EXPECT_EQ(collector.add(Rank{0}, report(1))->value().step, 1);
  EXPECT_EQ(collector.add(Rank{0}, report(2))->value().step, 2);
}

TEST(Metrics, RefuseLossesThatDifferInTheLastBit) {
  StepReport other = report(1);
  other.outcome.loss = std::nextafter(other.outcome.loss, 3);
  const auto metrics = account_of({report(1), other});
  ASSERT_FALSE(metrics.ok());
  EXPECT_EQ(metrics.error().code, ErrorCode::kInternal);
}

TEST(Metrics, RefuseAStepReportedTwiceOrAgain) {
  MetricsCollector collector(2, 0);
  ASSERT_TRUE(collector.add(Rank{0}, report(1)).ok());
  EXPECT_FALSE(collector.add(Rank{0}, report(1)).ok());
  ASSERT_TRUE(collector.add(Rank{1}, report(1)).ok());
  EXPECT_FALSE(collector.add(Rank{1}, report(1)).ok());
}

TEST(Metrics, RefuseARankThatRunsAway) {
  MetricsCollector collector(2, 0);
  std::int64_t step = 1;
  while (step < 2000 && collector.add(Rank{0}, report(step)).ok()) ++step;
  EXPECT_LT(step, 2000);
}

TEST(Metrics, HoldTheEvaluationWhenThereWasOne) {
  StepReport evaluated = report(1);
  evaluated.evaluation = {.tokens = 64, .loss = std::log(8.0), .bytes_per_token = 1.5};
  const Json json = metrics_to_json(*account_of({report(1), evaluated}));
  EXPECT_NEAR(json["eval_bits_per_byte"].get<double>(), 2, 1e-12);
  EXPECT_FALSE(json.contains("eval_perplexity"));
  EXPECT_FALSE(json.contains("accuracy") || json.contains("eval_accuracy"));
  EXPECT_FALSE(metrics_to_json(*account_of({report(1)})).contains("eval_loss"));
}

TEST(Metrics, HoldThePerplexityOfTokens) {
  MetricsCollector collector(1, 0, {.has_perplexity = true});
  StepReport evaluated = report(1);
  evaluated.evaluation = {.tokens = 64, .loss = std::log(8.0)};
  const auto metrics = collector.add(Rank{0}, evaluated);
  EXPECT_NEAR(metrics->value().eval_perplexity.value_or(0), 8, 1e-12);
}

TEST(Metrics, TellWhatWasPredictedRightWhereItIsCounted) {
  StepReport counted = report(1);
  counted.outcome.accuracy = 0.5;
  counted.evaluation = {.tokens = 64, .accuracy = 0.75, .top5_accuracy = 0.875};
  const Json json = metrics_to_json(*account_of({counted}));
  EXPECT_EQ(json["accuracy"], 0.5);
  EXPECT_EQ(json["eval_accuracy"], 0.75);
  EXPECT_EQ(json["eval_top5_accuracy"], 0.875);
}

TEST(Metrics, TellAStepWithoutTargetsFromOneThatWasSkipped) {
  StepReport empty = report(1);
  empty.outcome.tokens = 0;
  empty.outcome.loss = std::nan("");
  const auto metrics = account_of({empty, empty});
  EXPECT_TRUE(metrics->without_targets);
  const Json json = metrics_to_json(*metrics);
  EXPECT_EQ(json["without_targets"], true);
  EXPECT_EQ(json["skipped"], false);
  EXPECT_TRUE(json["loss"].is_null());
  EXPECT_TRUE(metrics_from_json(json, "the line")->without_targets);
  empty.outcome.skipped = true;
  EXPECT_FALSE(account_of({empty, empty})->without_targets);
  EXPECT_FALSE(metrics_to_json(*account_of({report(1)})).contains("without_targets"));
}

TEST(Metrics, HaveNoLossOfAnEvaluationWithoutTargets) {
  StepReport empty = report(1);
  empty.evaluation = {.loss = std::nan("")};
  const auto metrics = account_of({empty});
  EXPECT_TRUE(metrics->eval_without_targets);
  EXPECT_FALSE(metrics->eval_loss.has_value());
  const Json json = metrics_to_json(*metrics);
  EXPECT_EQ(json["eval_without_targets"], true);
  EXPECT_FALSE(json.contains("eval_loss"));
}

TEST(Metrics, WriteANumberThatIsNotFiniteAsAGap) {
  StepReport diverged = report(1);
  diverged.outcome.loss = std::nan("");
  EXPECT_TRUE(metrics_to_json(*account_of({diverged, diverged}))["loss"].is_null());
}

TEST(Metrics, DoNotDependOnTheOrderOfTheReports) {
  EXPECT_TRUE(rc::check([]() {
    const auto order = *rc::gen::exec([] {
      std::vector<int> left = {0, 1, 2, 3};
      std::vector<int> ranks;
      while (!left.empty()) {
        const auto at = *rc::gen::inRange<std::size_t>(0, left.size());
        ranks.push_back(left[at]);
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(at));
      }
      return ranks;
    });
    MetricsCollector collector(4, 0);
    std::optional<StepMetrics> metrics;
    for (const int rank : order) {
      StepReport own = report(1);
      own.times.wait_s = {{0.01 * rank}};
      auto added = collector.add(Rank{rank}, own);
      RC_ASSERT(added.ok());
      metrics = *added;
    }
    RC_ASSERT(metrics.has_value());
    RC_ASSERT(metrics->wait_s == (std::vector{0.0, 0.01, 0.02, 0.03}));
  }));
}

}  // namespace
}  // namespace motley
