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

TrainConfig wsd_of(std::int64_t steps) {
  TrainConfig train = cosine_of(steps);
  train.schedule = "wsd";
  return train;
}

// 60 steps decay after step 54; step 55 has the highest rate too.
TEST(RateChange, OfWsdNeedsNoJumpBeforeItsDecay) {
  for (const std::int64_t done : {5, 30, 54}) {
    EXPECT_FALSE(rate_jump({wsd_of(60), false, done}, wsd_of(120))) << done;
  }
  for (const std::int64_t done : {5, 30, 54, 55}) {
    EXPECT_TRUE(has_same_rates_so_far({wsd_of(60), false, done}, wsd_of(120))) << done;
    EXPECT_TRUE(has_same_rates_so_far({wsd_of(120), false, done}, wsd_of(60))) << done;
  }
  EXPECT_FALSE(has_same_rates_so_far({wsd_of(60), false, 56}, wsd_of(120)));
  EXPECT_EQ(*rate_jump({wsd_of(60), false, 60}, wsd_of(120)),
            "the learning rate 0.000167 (step 60) -> 0.001 (step 61)");
  EXPECT_THAT(*option_without_jump({wsd_of(60), false, 60}, wsd_of(120)),
              HasSubstr("from the checkpoint of step 54, before the decay"));
  EXPECT_THAT(longer_run_remedy(wsd_of(60), 60), HasSubstr("\nor from the checkpoint of step 54"));
}

TEST(RateChange, OfOtherSchedulesIsOneOfThePast) {
  EXPECT_FALSE(has_same_rates_so_far({cosine_of(60), false, 30}, cosine_of(120)));
  EXPECT_FALSE(has_same_rates_so_far({cosine_of(60), false, 30}, wsd_of(120)));
  TrainConfig constant = cosine_of(60);
  constant.schedule = "constant";
  EXPECT_TRUE(has_same_rates_so_far({constant, false, 50}, wsd_of(120)));
  EXPECT_FALSE(has_same_rates_so_far({constant, true, 50}, wsd_of(120))) << "the old convention";
  EXPECT_FALSE(has_same_rates_so_far({constant, false, 50}, wsd_of(40)));
  TrainConfig other = wsd_of(120);
  other.lr = 2e-3;
  EXPECT_FALSE(has_same_rates_so_far({wsd_of(60), false, 30}, other));
  other = wsd_of(120);
  other.warmup_steps = 12;
  EXPECT_FALSE(has_same_rates_so_far({wsd_of(60), false, 30}, other));
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
