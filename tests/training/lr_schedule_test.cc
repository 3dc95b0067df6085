#include "training/optimizer/lr_schedule.h"

#include <gtest/gtest.h>

#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace motley {
namespace {

TrainConfig schedule(const std::string& name) {
  TrainConfig train;
  train.schedule = name;
  train.steps = 110;
  train.warmup_steps = 10;
  train.lr = 1.0;
  train.min_lr = 0.2;
  return train;
}

TEST(LearningRate, RisesInEqualParts) {
  for (const char* name : {"cosine", "linear", "constant"}) {
    EXPECT_DOUBLE_EQ(learning_rate(schedule(name), 1), 0.1) << name;
    EXPECT_DOUBLE_EQ(learning_rate(schedule(name), 5), 0.5) << name;
    EXPECT_DOUBLE_EQ(learning_rate(schedule(name), 10), 1.0) << name;
  }
}

TEST(LearningRate, FallsToItsEndAndStaysThere) {
  for (const char* name : {"cosine", "linear"}) {
    EXPECT_DOUBLE_EQ(learning_rate(schedule(name), 60), 0.6) << name;  // half of the way
    EXPECT_DOUBLE_EQ(learning_rate(schedule(name), 110), 0.2) << name;
    EXPECT_DOUBLE_EQ(learning_rate(schedule(name), 500), 0.2) << name;
  }
}

TEST(LearningRate, FallsAsACosineOrALine) {
  // A quarter of the way: (1 + cos(pi / 4)) / 2 and 3 / 4 of the range are left.
  EXPECT_NEAR(learning_rate(schedule("cosine"), 35), 0.2 + 0.8 * 0.8535533905932737, 1e-15);
  EXPECT_NEAR(learning_rate(schedule("linear"), 35), 0.2 + 0.8 * 0.75, 1e-15);
}

TEST(LearningRate, StaysWhenConstant) {
  EXPECT_EQ(learning_rate(schedule("constant"), 11), 1.0);
  EXPECT_EQ(learning_rate(schedule("constant"), 110), 1.0);
}

TEST(LearningRate, NeedsNoWarmUp) {
  TrainConfig train = schedule("constant");
  train.warmup_steps = 0;
  EXPECT_EQ(learning_rate(train, 1), 1.0);
}

TEST(LearningRate, MayWarmUpToTheEnd) {
  TrainConfig train = schedule("cosine");
  train.warmup_steps = train.steps;
  EXPECT_EQ(learning_rate(train, train.steps), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(train, train.steps + 1), 0.2);
}

RC_GTEST_PROP(LearningRate, NeverLeavesItsRangeNorRisesAfterTheWarmUp, ()) {
  TrainConfig train = schedule(*rc::gen::element<std::string>("cosine", "linear", "constant"));
  train.steps = *rc::gen::inRange<std::int64_t>(1, 2000);
  train.warmup_steps = *rc::gen::inRange<std::int64_t>(0, train.steps + 1);
  const auto step =
      train.warmup_steps + *rc::gen::inRange<std::int64_t>(1, train.steps - train.warmup_steps + 2);
  const double rate = learning_rate(train, step);
  RC_ASSERT(rate >= train.min_lr && rate <= train.lr);
  RC_ASSERT(learning_rate(train, step + 1) <= rate);
}

}  // namespace
}  // namespace motley
