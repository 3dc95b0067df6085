#include "profiling/less_disturbed_sample.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

LayerSample sample(double forward_s, double backward_s, double input_s, double weight_s) {
  LayerSample sample;
  sample.micro_batch = 2;
  sample.forward_s = forward_s;
  sample.backward_s = backward_s;
  sample.split = SplitBackward{input_s, weight_s, 100};
  return sample;
}

TEST(LessDisturbedSample, IsTheMeanOfSimilarTimes) {
  LayerSample first = sample(1.0, 2.0, 1.0, 1.2);
  first.forward_spread_s = 0.02;
  LayerSample again = sample(1.09, 2.1, 1.09, 1.1);
  again.forward_spread_s = 0.04;
  const LayerSample combined = less_disturbed_sample(first, again);
  EXPECT_DOUBLE_EQ(combined.forward_s, 1.045);
  EXPECT_DOUBLE_EQ(combined.forward_spread_s, 0.03);
  EXPECT_DOUBLE_EQ(combined.backward_s, 2.05);
  EXPECT_DOUBLE_EQ(combined.split->input_s, 1.045);
  EXPECT_DOUBLE_EQ(combined.split->weight_s, 1.15);
}

TEST(LessDisturbedSample, UsesTheShorterOfDifferingTimes) {
  LayerSample quiet = sample(1.0, 2.0, 1.0, 1.1);
  quiet.forward_spread_s = 0.05;
  LayerSample busy = sample(1.3, 2.5, 1.2, 1.6);
  busy.forward_spread_s = 0.001;
  for (const LayerSample& combined :
       {less_disturbed_sample(quiet, busy), less_disturbed_sample(busy, quiet)}) {
    EXPECT_EQ(combined, quiet);
  }
}

// A disturbance may affect only one of the times, or different times in different measurements.
TEST(LessDisturbedSample, ComparesEachTimeByItself) {
  const LayerSample combined =
      less_disturbed_sample(sample(1.0, 2.6, 1.0, 1.7), sample(1.5, 2.0, 1.0, 1.1));
  EXPECT_EQ(combined, sample(1.0, 2.0, 1.0, 1.1));
}

TEST(LessDisturbedSample, LimitsTheInputPartToBackward) {
  const LayerSample combined =
      less_disturbed_sample(sample(1, 1.0, 1.0, 0), sample(1, 1.2, 1.08, 0));
  EXPECT_DOUBLE_EQ(combined.backward_s, 1.0);
  EXPECT_DOUBLE_EQ(combined.split->input_s, 1.0);
}

TEST(LessDisturbedSample, UsesTheLargerByteCounts) {
  LayerSample first = sample(1, 1, 1, 1);
  LayerSample again = first;
  first.saved_bytes = 5;
  again.workspace_bytes = 7;
  again.split->queued_bytes = 200;
  const LayerSample combined = less_disturbed_sample(first, again);
  EXPECT_EQ(combined.saved_bytes, 5);
  EXPECT_EQ(combined.workspace_bytes, 7);
  EXPECT_EQ(combined.split->queued_bytes, 200);
}

}  // namespace
}  // namespace motley
