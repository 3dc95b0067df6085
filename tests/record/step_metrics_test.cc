#include "record/step_metrics.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace motley {
namespace {

StepMetrics example() {
  StepMetrics metrics;
  metrics.step = 7;
  metrics.outcome = {.loss = 2.5,
                     .tokens = 512,
                     .accuracy = 0.5,
                     .lr = 0.25,
                     .grad_norm = 1.5,
                     .skipped = true,
                     .gradient_scale = 64};
  metrics.step_s = 0.5;
  metrics.predicted_step_s = 0.75;
  metrics.wire_bytes = 3000;
  metrics.bubble = 0.25;
  metrics.losses = {0.125, 0.0625, 0.5, 0.75};
  metrics.wait_s = {0.125};
  metrics.time_s = 1.5e9;
  metrics.ranks = {{{0.375, 0.25, 0.0625, {{0.125, 0, 0.5}}}, 1000}};
  metrics.links = {{Rank{0}, Rank{1}, 2000}};
  metrics.eval_loss = 0;
  metrics.eval_perplexity = 1;
  metrics.eval_accuracy = 0.75;
  metrics.eval_bits_per_byte = 2;
  return metrics;
}

// A line of metrics.jsonl (docs/formats/metrics.md).
constexpr const char* kLine =
    R"({"step":7,"loss":2.5,"tokens":512,"step_s":0.5,"tokens_per_s":1024.0,)"
    R"("predicted_step_s":0.75,"lr":0.25,"grad_norm":1.5,"skipped":true,"wire_bytes":3000,)"
    R"("bubble":0.25,"losses":{"imbalance":0.125,"links_and_filling":0.0625,"codec":0.5,)"
    R"("optimizer":0.75},"wait_s":[0.125],"time":1500000000.0,"ranks":[{"compute_s":0.375,)"
    R"("codec_s":0.25,"optimizer_s":0.0625,"wait_s":{"activation":0.125,"sum":0.5},)"
    R"("memory_bytes":1000}],"links":[{"from":0,"to":1,"bytes":2000}],"gradient_scale":64.0,)"
    R"("accuracy":0.5,"eval_accuracy":0.75,"eval_loss":0.0,"eval_perplexity":1.0,)"
    R"("eval_bits_per_byte":2.0})";

TEST(StepMetrics, AreThisLine) {
  EXPECT_EQ(metrics_to_json(example()).dump(), kLine);
}

TEST(StepMetrics, SayWhatWasAmongTheFiveHighestScoresWhereItIsCounted) {
  StepMetrics metrics = example();
  metrics.eval_top5_accuracy = 0.875;
  const Json json = metrics_to_json(metrics);
  EXPECT_EQ(json["eval_top5_accuracy"], 0.875);
  EXPECT_EQ(metrics_from_json(json, "metrics.jsonl")->eval_top5_accuracy, 0.875);
  EXPECT_EQ(metrics_from_json(Json::parse(kLine), "metrics.jsonl")->eval_top5_accuracy,
            std::nullopt)
      << "a line of an earlier version";
}

TEST(StepMetrics, ReadBackAsTheyWereWritten) {
  const auto read = metrics_from_json(Json::parse(kLine), "metrics.jsonl");
  ASSERT_TRUE(read.ok()) << describe(read.error());
  EXPECT_EQ(metrics_to_json(*read).dump(), kLine);
}

}  // namespace
}  // namespace motley
