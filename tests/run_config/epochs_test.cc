#include "run_config/epochs.h"

#include <gmock/gmock.h>

#include "run_config/config_io.h"

namespace motley {
namespace {

using testing::HasSubstr;

ResolvedConfig resolved(const std::string& toml, const Overrides& overrides = {}) {
  auto result = resolve_config(toml, "job.toml", {}, overrides);
  EXPECT_TRUE(result.ok()) << describe(result.error());
  return *std::move(result);
}

Result<Config> counted(const ResolvedConfig& asked, std::optional<std::uint64_t> samples) {
  return with_steps_of_epochs(asked.config, asked.origins, samples);
}

TEST(Epochs, AreStepsRoundedUp) {
  EXPECT_EQ(steps_of_epochs(3, 1000, 32), 94);
  EXPECT_EQ(steps_of_epochs(3, 100, 32), 10) << "samples follow one another across epochs";
  EXPECT_EQ(steps_of_epochs(2, 64, 32), 4);
  EXPECT_EQ(steps_of_epochs(0.5, 1000, 50), 10);
  EXPECT_EQ(steps_of_epochs(0.1, 1000, 10), 10) << "0.1 is a little more than a tenth";
  EXPECT_EQ(steps_of_epochs(0.001, 10, 32), 1);
}

TEST(Epochs, GiveTheStepsOfTheConfiguration) {
  const ResolvedConfig asked = resolved("[train]\nepochs = 3\nglobal_batch = 32");
  EXPECT_EQ(asked.config.train.steps, 0) << "not known without the data";
  const auto config = counted(asked, 10'000);
  ASSERT_TRUE(config.ok()) << describe(config.error());
  EXPECT_EQ(config->train.steps, 938);
  EXPECT_EQ(config->train.warmup_steps, 93) << "at most a tenth";
  EXPECT_EQ(epochs_text(config->train, 10'000), "3 epochs of 10000 samples = 938 steps");
  EXPECT_EQ(counted(asked, 100)->train.warmup_steps, 1);
  const ResolvedConfig by_steps = resolved("[train]\nsteps = 7");
  EXPECT_EQ(counted(by_steps, 1000)->train.steps, 7);
  EXPECT_EQ(counted(by_steps, std::nullopt)->train.steps, 7);
}

TEST(Epochs, LeaveAGivenWarmUp) {
  const ResolvedConfig asked = resolved("[train]\nepochs = 1\nwarmup_steps = 300");
  EXPECT_EQ(counted(asked, 32 * 1000)->train.warmup_steps, 300);
  const auto too_short = counted(asked, 32 * 100);
  ASSERT_FALSE(too_short.ok());
  EXPECT_THAT(too_short.error().what, HasSubstr("train.warmup_steps must be at most train.steps"));
}

TEST(Epochs, OrStepsCountByTheLaterSource) {
  const ResolvedConfig epochs = resolved("[train]\nsteps = 50", {{"train.epochs", "2"}});
  EXPECT_EQ(epochs.config.train.steps, 0);
  EXPECT_EQ(epochs.config.train.epochs, 2);
  const ResolvedConfig steps = resolved("[train]\nepochs = 2", {{"train.steps", "50"}});
  EXPECT_EQ(steps.config.train.steps, 50);
  EXPECT_EQ(steps.config.train.epochs, 0);
  const auto by_variable =
      resolve_config("[train]\nsteps = 50", "job.toml", {{"MOTLEY_TRAIN_EPOCHS", "2"}}, {});
  ASSERT_TRUE(by_variable.ok()) << describe(by_variable.error());
  EXPECT_EQ(by_variable->config.train.steps, 0);
}

TEST(Epochs, AndStepsExcludeEachOtherInOneCommand) {
  const auto both =
      resolve_config("", "job.toml", {}, {{"train.steps", "5"}, {"train.epochs", "1"}});
  ASSERT_FALSE(both.ok());
  EXPECT_EQ(both.error().what,
            "train.epochs and train.steps exclude each other, given by --set train.epochs");
}

// The configuration of a run has both.
TEST(Epochs, AndStepsOfAFileMustAgree) {
  const auto first = counted(resolved("[train]\nepochs = 3"), 1000);
  ASSERT_TRUE(first.ok()) << describe(first.error());
  const ResolvedConfig again = resolved(config_to_toml(*first));
  EXPECT_EQ(again.config.train.steps, 94);
  EXPECT_EQ(again.config.train.epochs, 3);
  EXPECT_TRUE(counted(again, 1000).ok());
  const auto other = counted(again, 2000);
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, ErrorCode::kConfig);
  EXPECT_EQ(other.error().what, "train.steps = 94 and train.epochs = 3 contradict each other");
  EXPECT_THAT(other.error().cause, HasSubstr("3 epochs of 2000 samples = 188 steps"));
  EXPECT_EQ(counted(again, std::nullopt)->train.steps, 94) << "the run's own number";
}

TEST(Epochs, NeedTheData) {
  const auto unknown = counted(resolved("[train]\nepochs = 3"), std::nullopt);
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().key, "train.epochs");
  EXPECT_THAT(unknown.error().remedy, HasSubstr("train.steps = epochs * samples"));
  const auto many = counted(resolved("[train]\nepochs = 1000000"), std::uint64_t{1} << 40);
  ASSERT_FALSE(many.ok());
  EXPECT_THAT(many.error().what, HasSubstr("too many"));
}

}  // namespace
}  // namespace motley
