#include "cluster/run_record/divergence_detector.h"

#include <limits>

#include <gmock/gmock.h>

namespace motley {
namespace {

using testing::HasSubstr;

StepMetrics step(std::int64_t number, bool skipped) {
  StepMetrics metrics;
  metrics.step = number;
  metrics.outcome.skipped = skipped;
  metrics.outcome.loss = 7.5;
  metrics.outcome.grad_norm = std::numeric_limits<double>::infinity();
  return metrics;
}

TEST(DivergenceDetector, EndsARunThatSkipsTooManyStepsInARow) {
  DivergenceDetector watch(3);
  for (const std::int64_t number : {1, 2}) ASSERT_TRUE(watch.add(step(number, true)).ok());
  ASSERT_TRUE(watch.add(step(3, false)).ok());  // ends the row
  for (const std::int64_t number : {4, 5}) ASSERT_TRUE(watch.add(step(number, true)).ok());
  const auto ended = watch.add(step(6, true));
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code, ErrorCode::kDiverged);
  EXPECT_EQ(static_cast<int>(ended.error().code), 9);
  EXPECT_THAT(ended.error().what,
              HasSubstr("3 consecutive steps were skipped, the last one step 6"));
  EXPECT_THAT(ended.error().remedy, HasSubstr("train.lr"));
}

TEST(DivergenceDetector, SaysOnceForEachRowThatStepsAreSkipped) {
  DivergenceDetector watch(5);
  EXPECT_FALSE(watch.add(step(1, false))->has_value());
  const auto first = watch.add(step(2, true));
  ASSERT_TRUE(first.ok() && first->has_value());
  EXPECT_THAT(**first, HasSubstr("step 2 was skipped: its gradient was not finite"));
  EXPECT_THAT(**first, HasSubstr("norm inf, loss 7.5"));
  EXPECT_THAT(**first, HasSubstr("train.max_skipped"));
  EXPECT_FALSE(watch.add(step(3, true))->has_value());
  EXPECT_FALSE(watch.add(step(4, false))->has_value());
  EXPECT_TRUE(watch.add(step(5, true))->has_value()) << "another row";
}

TEST(DivergenceDetector, LetsARunSkipForEverWhereItIsAskedTo) {
  DivergenceDetector watch(0);
  for (std::int64_t number = 1; number < 1000; ++number) {
    ASSERT_TRUE(watch.add(step(number, true)).ok());
  }
}

}  // namespace
}  // namespace motley
