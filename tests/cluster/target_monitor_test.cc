#include "cluster/run_record/target_monitor.h"

#include <limits>

#include <gmock/gmock.h>

#include "cluster/run_record/divergence_detector.h"

namespace motley {
namespace {

using testing::HasSubstr;

StepMetrics empty_step(std::int64_t number, bool without_targets) {
  StepMetrics metrics;
  metrics.step = number;
  metrics.without_targets = without_targets;
  metrics.outcome.loss = without_targets ? std::numeric_limits<double>::quiet_NaN() : 2.5;
  return metrics;
}

TEST(TargetMonitor, SaysOnceThatAStepHasNoTargets) {
  TargetMonitor watch;
  EXPECT_FALSE(watch.add(empty_step(1, false)));
  const auto line = watch.add(empty_step(2, true));
  ASSERT_TRUE(line);
  EXPECT_THAT(*line, HasSubstr("step 2 has no targets"));
  EXPECT_FALSE(watch.summary());
  EXPECT_FALSE(watch.add(empty_step(3, true)));
  EXPECT_FALSE(watch.add(empty_step(4, false)));
  EXPECT_EQ(watch.steps_without(), 2);
  EXPECT_THAT(*watch.summary(), HasSubstr("2 of 4 steps had no targets"));
}

TEST(TargetMonitor, SaysThatNothingWasLearned) {
  TargetMonitor watch;
  for (const std::int64_t step : {1, 2}) (void)watch.add(empty_step(step, true));
  EXPECT_THAT(*watch.summary(), HasSubstr("the model was not trained"));
}

TEST(TargetMonitor, SaysOnceThatAnEvaluationHasNoTargets) {
  TargetMonitor watch;
  StepMetrics metrics = empty_step(10, false);
  metrics.eval_without_targets = true;
  EXPECT_THAT(*watch.add(metrics), HasSubstr("the evaluation at step 10 has no loss"));
  EXPECT_FALSE(watch.add(metrics));
}

// A step without targets does not end a row of skipped steps either.
TEST(TargetMonitor, LeavesRowsOfSkippedStepsAlone) {
  DivergenceDetector watch(2);
  StepMetrics skipped;
  skipped.outcome.skipped = true;
  ASSERT_TRUE(watch.add(skipped).ok());
  ASSERT_TRUE(watch.add(empty_step(2, true)).ok());
  EXPECT_FALSE(watch.add(skipped).ok());
  LossMonitor loss;
  EXPECT_FALSE(loss.add(empty_step(1, true)));
}

}  // namespace
}  // namespace motley
