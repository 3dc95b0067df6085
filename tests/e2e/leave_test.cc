// Workers that are asked to end (SIGTERM) by their machines' owners or batch systems: the step
// under way is saved, and the others continue.
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/small_job.h"

namespace motley::test {
namespace {

using testing::HasSubstr;
using testing::Not;

// No checkpoint but the last one, and those of workers that leave.
const std::vector<std::string> kSettings = {"train.steps=60", "checkpoint.every=1000",
                                            "checkpoint.keep=0"};

class Leave : public testing::Test {
 protected:
  [[nodiscard]] std::vector<std::string> words() const {
    std::vector<std::string> words = SmallJob::measured_with(kSettings, kDeskAndBox);
    words.insert(words.end(), {"--cluster", job_.folder().write("cluster.toml", kDeskAndBox),
                               "--pin", "always desk", "--pin", "always box", "--set",
                               "parallel.replicas=false", "--set", "run.restarts=3"});
    return words;
  }

  [[nodiscard]] std::size_t steps_done() const {
    const std::string text =
        read_text(std::filesystem::path(job_.run_dir("run")) / "metrics.jsonl");
    return static_cast<std::size_t>(std::ranges::count(text, '\n'));
  }

  // Whether the run trains with two workers and has done some steps.
  bool trains_on_two(const RunningMotley& run) const {
    return eventually([&] { return steps_done() >= 5 && run.workers().size() == 2; });
  }

  SmallJob job_;
};

TEST_F(Leave, LosesNoStepAndTheOtherMachineContinues) {
  const Outcome undisturbed = job_.train("undisturbed", words());
  ASSERT_EQ(undisturbed.status, 0) << undisturbed.err;
  RunningMotley run(job_.train_words("run", words()));
  ASSERT_TRUE(trains_on_two(run));
  ::kill(run.workers().back(), SIGTERM);
  const Outcome outcome = run.wait();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("its worker was asked to end (SIGTERM)"));
  EXPECT_THAT(outcome.err, HasSubstr(" left, after step "));
  EXPECT_THAT(outcome.err, Not(HasSubstr("repeated")));
  EXPECT_EQ(steps_done(), 60U) << "each step was trained once";
  EXPECT_EQ(job_.parameter_hash("run", 60), job_.parameter_hash("undisturbed", 60));
}

TEST_F(Leave, EndsWhereAllDo) {
  RunningMotley run(job_.train_words("run", words()));
  ASSERT_TRUE(trains_on_two(run));
  for (const pid_t worker : run.workers()) ::kill(worker, SIGTERM);
  const Outcome outcome = run.wait();
  EXPECT_EQ(outcome.status, 143) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("every machine leaves, after step "));
  EXPECT_THAT(outcome.err, HasSubstr("--resume"));
  const Outcome resumed = motley([&] {
    std::vector<std::string> again = job_.train_words("run", words());
    again.emplace_back("--resume");
    return again;
  }());
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_EQ(steps_done(), 60U);
}

}  // namespace
}  // namespace motley::test
