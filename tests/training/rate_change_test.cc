#include "training/optimizer/rate_change.h"

#include <fmt/format.h>

#include <gmock/gmock.h>

#include "training/optimizer/lr_schedule.h"

namespace motley {
namespace {

using testing::HasSubstr;

TrainConfig cosine_of(std::int64_t steps) {
  TrainConfig train;
  train.lr = 1e-3;
  train.steps = steps;
  train.warmup_steps = 10;
  return train;
}

TEST(RateChange, SaysBothRatesOfAJump) {
  const RateHistory before{cosine_of(60), false, 60};
  EXPECT_EQ(*rate_jump(before, cosine_of(120)),
            "the learning rate 9.87e-07 (step 60) -> 0.000571 (step 61)");
  EXPECT_FALSE(option_without_jump(before, cosine_of(120))) << "0 would train nothing";
  EXPECT_EQ(*option_without_jump({cosine_of(60), false, 30}, cosine_of(120)),
            "--set train.schedule_steps=60 keeps the run's schedule");
}

TEST(RateChange, KnowsWhatIsNoJump) {
  const RateHistory before{cosine_of(60), false, 30};
  EXPECT_FALSE(rate_jump(before, cosine_of(60)));
  TrainConfig same_schedule = cosine_of(120);
  same_schedule.schedule_steps = 60;
  EXPECT_FALSE(rate_jump(before, same_schedule));
  EXPECT_FALSE(option_without_jump(before, same_schedule));
  TrainConfig constant = cosine_of(60);
  constant.schedule = "constant";
  TrainConfig longer = constant;
  longer.steps = 120;
  EXPECT_FALSE(rate_jump({constant, false, 60}, longer));
  EXPECT_FALSE(option_without_jump({constant, false, 60}, longer));
}

TEST(RateChange, SaysWhatTheConventionChanges) {
  const RateHistory early{cosine_of(60), true, 30};
  const auto line = convention_change(early, cosine_of(60));
  ASSERT_TRUE(line);
  EXPECT_THAT(*line, HasSubstr(fmt::format("step 31 now has {:.4g} instead of {:.4g}",
                                           learning_rate(cosine_of(60), 31),
                                           legacy_learning_rate(cosine_of(60), 31))));
  EXPECT_FALSE(convention_change({cosine_of(60), false, 30}, cosine_of(60)));
  TrainConfig constant = cosine_of(60);
  constant.schedule = "constant";
  EXPECT_FALSE(convention_change({constant, true, 30}, constant)) << "both have the highest rate";
  EXPECT_TRUE(convention_change({constant, true, 5}, constant)) << "in its warm-up";
}

TEST(RateChange, FindsStepsThatTrainNothing) {
  TrainConfig train = cosine_of(120);
  EXPECT_FALSE(idle_steps(train, 1));
  train.schedule_steps = 100;
  EXPECT_THAT(*idle_steps(train, 1), HasSubstr("steps 101 to 120 have learning rate 0"));
  EXPECT_THAT(*idle_steps(train, 111), HasSubstr("steps 111 to 120"));
  train.min_lr = 1e-5;
  EXPECT_FALSE(idle_steps(train, 1));
  train.min_lr = 0;
  train.schedule = "constant";
  EXPECT_FALSE(idle_steps(train, 1));
}

TEST(RateChange, OffersLongerRunsWithTheirRates) {
  EXPECT_EQ(longer_run_remedy(cosine_of(60), 60),
            "to train further: --resume --set train.steps=120 --set train.schedule_steps=120 "
            "--allow-changes, the learning rate 9.87e-07 (step 60) -> 0.000571 (step 61)");
  TrainConfig train = cosine_of(60);
  train.min_lr = 1e-5;
  EXPECT_THAT(longer_run_remedy(train, 60),
              HasSubstr("\nor to train further: --resume --set train.steps=120 --set "
                        "train.schedule_steps=60, at train.min_lr = 1e-05"));
  train.schedule = "constant";
  EXPECT_EQ(longer_run_remedy(train, 60), "to train further: --resume --set train.steps=120");
}

}  // namespace
}  // namespace motley
