#include "training/optimizer/lr_schedule.h"

#include <fstream>
#include <sstream>
#include <string>

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

TEST(LearningRate, RisesInEqualPartsFromZero) {
  for (const char* name : {"cosine", "linear", "constant", "wsd"}) {
    EXPECT_EQ(learning_rate(schedule(name), 1), 0) << name;
    EXPECT_DOUBLE_EQ(learning_rate(schedule(name), 6), 0.5) << name;
    EXPECT_DOUBLE_EQ(learning_rate(schedule(name), 11), 1.0) << name;
  }
}

TEST(LearningRate, FallsToItsEndAndStaysThere) {
  for (const char* name : {"cosine", "linear"}) {
    EXPECT_DOUBLE_EQ(learning_rate(schedule(name), 61), 0.6) << name;  // halfway
    EXPECT_GT(learning_rate(schedule(name), 110), 0.2) << name << ": the last step learns too";
    EXPECT_DOUBLE_EQ(learning_rate(schedule(name), 111), 0.2) << name;
    EXPECT_DOUBLE_EQ(learning_rate(schedule(name), 500), 0.2) << name;
  }
}

TEST(LearningRate, OfWsdFallsInTheLastSteps) {
  TrainConfig train = schedule("wsd");
  for (const std::int64_t step : {11, 61, 100}) EXPECT_EQ(learning_rate(train, step), 1.0) << step;
  EXPECT_EQ(learning_rate(train, 100), 1.0) << "decays over a tenth of 110 steps";
  EXPECT_LT(learning_rate(train, 101), 1.0);
  train.decay_steps = 40;
  EXPECT_EQ(learning_rate(train, 71), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(train, 91), 0.6);
  EXPECT_GT(learning_rate(train, 110), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(train, 111), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate(train, 500), 0.2);
  TrainConfig longer = train;
  longer.steps = 500;
  for (std::int64_t step = 1; step <= 71; ++step) {
    EXPECT_EQ(learning_rate(longer, step), learning_rate(train, step)) << step;
  }
  train.decay_steps = 100;
  EXPECT_DOUBLE_EQ(learning_rate(train, 61), 0.6) << "as linear";
}

// The file was written by make_schedule_golden.py.
TEST(LearningRate, IsThatOfPyTorchsAndTransformersSchedulers) {
  std::ifstream file(std::string(MOTLEY_GOLDEN) + "/schedules.txt");
  int lines = 0;
  for (std::string text; std::getline(file, text);) {
    if (text.starts_with('#')) continue;
    std::istringstream line(text);
    TrainConfig train;
    train.lr = 1;
    line >> train.schedule >> train.warmup_steps >> train.steps >> train.min_lr;
    if (train.schedule == "wsd") line >> train.decay_steps;
    std::int64_t step = 0;
    for (double expected = 0; line >> expected;) {
      ++step;
      EXPECT_NEAR(learning_rate(train, step), expected, 1e-8) << "step " << step << " of " << text;
    }
    EXPECT_EQ(step, train.steps) << text;
    ++lines;
  }
  EXPECT_EQ(lines, 37);
}

TEST(LearningRate, HasALengthOfItsOwn) {
  for (const char* name : {"cosine", "linear"}) {
    TrainConfig longer = schedule(name);
    longer.steps = 300;
    EXPECT_GT(learning_rate(longer, 111), 0.2) << name;
    longer.schedule_steps = 110;
    for (const std::int64_t step : {1, 11, 61, 110, 111, 300}) {
      EXPECT_EQ(learning_rate(longer, step), learning_rate(schedule(name), step)) << name;
    }
  }
}

// In runs of earlier versions: the rate that is now the next step's.
TEST(LearningRate, WasOneStepAhead) {
  EXPECT_DOUBLE_EQ(legacy_learning_rate(schedule("linear"), 1), 0.1);
  EXPECT_DOUBLE_EQ(legacy_learning_rate(schedule("linear"), 10), 1.0);
  EXPECT_DOUBLE_EQ(legacy_learning_rate(schedule("linear"), 110), 0.2);
}

TEST(LearningRate, NeedsNoWarmUp) {
  TrainConfig train = schedule("constant");
  train.warmup_steps = 0;
  EXPECT_EQ(learning_rate(train, 1), 1.0);
}

TEST(LearningRate, MayWarmUpToTheEnd) {
  TrainConfig train = schedule("cosine");
  train.warmup_steps = train.steps;
  EXPECT_EQ(learning_rate(train, train.steps + 1), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(train, train.steps + 2), 0.2);
}

RC_GTEST_PROP(LearningRate, NeverLeavesItsRangeNorRisesAfterTheWarmUp, ()) {
  TrainConfig train =
      schedule(*rc::gen::element<std::string>("cosine", "linear", "constant", "wsd"));
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
