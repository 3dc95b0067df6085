// checkpoint.every_minutes: saves by the clock of rank 0, of the same step on all ranks.
#include <fmt/format.h>

#include <gmock/gmock.h>

#include "base/json.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

using testing::ElementsAre;

class TimedSaves : public testing::Test {
 protected:
  [[nodiscard]] Outcome train(const std::string& run, const std::vector<std::string>& more) const {
    std::vector<std::string> words = {
        "--stages",         "2", "--set", "train.steps=8", "--set", "checkpoint.every=5", "--set",
        "checkpoint.keep=0"};
    words.insert(words.end(), more.begin(), more.end());
    return job_.train(run, words);
  }

  // Steps of the committed checkpoints, ascending.
  [[nodiscard]] std::vector<int> saved_steps(const std::string& run) const {
    std::vector<int> steps;
    for (int step = 0; step <= 8; ++step) {
      if (std::filesystem::exists(folder_of(run, step))) steps.push_back(step);
    }
    return steps;
  }

  [[nodiscard]] std::filesystem::path folder_of(const std::string& run, int step) const {
    return job_.folder() / run / fmt::format("checkpoints/step-{:06}", step);
  }

  SmallJob job_;
};

// The interval is shorter than any step. A checkpoint exists only if both ranks saved its step.
TEST_F(TimedSaves, AreMadeBesidesThoseBySteps) {
  ASSERT_EQ(train("by-steps", {}).status, 0);
  EXPECT_THAT(saved_steps("by-steps"), ElementsAre(5, 8));
  const Outcome outcome = train("by-time", {"--set", "checkpoint.every_minutes=1e-7"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(saved_steps("by-time"), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  for (int step = 1; step <= 8; ++step) {
    for (const char* file :
         {"optimizer-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}) {
      EXPECT_TRUE(std::filesystem::exists(folder_of("by-time", step) / file)) << step;
    }
  }
  EXPECT_EQ(metric_column(job_.run_dir("by-time"), "loss"),
            metric_column(job_.run_dir("by-steps"), "loss"));
  EXPECT_EQ(job_.parameter_hash("by-time", 8), job_.parameter_hash("by-steps", 8));
}

TEST_F(TimedSaves, ComeNotBeforeTheirTime) {
  ASSERT_EQ(train("run", {"--set", "checkpoint.every_minutes=1000"}).status, 0);
  EXPECT_THAT(saved_steps("run"), ElementsAre(5, 8));
}

// It does not affect the results, so a resume may change it.
TEST_F(TimedSaves, AreNoChangeOfTheRun) {
  ASSERT_EQ(train("run", {"--stop-after", "2"}).status, 0);
  const Outcome outcome = train("run", {"--set", "checkpoint.every_minutes=1e-7", "--resume"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.err.find("every_minutes"), std::string::npos) << outcome.err;
  EXPECT_THAT(saved_steps("run"), ElementsAre(2, 3, 4, 5, 6, 7, 8));
}

TEST_F(TimedSaves, AreRefusedWhereTheTimeIsNone) {
  const Outcome outcome = train("run", {"--set", "checkpoint.every_minutes=-1"});
  EXPECT_EQ(outcome.status, 3);
  EXPECT_NE(outcome.err.find("checkpoint.every_minutes"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace motley::test
