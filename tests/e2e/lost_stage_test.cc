// A stage that dies ends the run with an error that names the first cause, and no process remains.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/small_job.h"

namespace motley::test {
namespace {

class LongRun {
 public:
  explicit LongRun(const std::vector<std::string>& more)
      : motley_(job_.train_words("run", words(more))) {}

  // Waits until some steps are done, so that all stages are at work.
  void reach_step(std::size_t step) {
    ASSERT_TRUE(eventually([&] {
      const std::string text =
          read_text(std::filesystem::path(job_.run_dir("run")) / "metrics.jsonl");
      return static_cast<std::size_t>(std::ranges::count(text, '\n')) >= step;
    }));
    workers_ = motley_.workers();
  }

  RunningMotley& motley() { return motley_; }

  [[nodiscard]] std::string trace() const {
    return read_text(std::filesystem::path(job_.run_dir("run")) / "trace.json");
  }

  const std::vector<pid_t>& workers() const { return workers_; }

  void expect_nothing_left() const {
    for (const pid_t pid : workers_) {
      EXPECT_TRUE(eventually([&] { return !process_exists(pid); })) << "pid " << pid << " remains";
    }
  }

 private:
  static std::vector<std::string> words(std::vector<std::string> more) {
    more.insert(more.end(), {"--stages", "3", "--set", "train.steps=1000000"});
    return more;
  }

  SmallJob job_;
  RunningMotley motley_;
  std::vector<pid_t> workers_;
};

class KilledStage : public testing::TestWithParam<std::tuple<std::size_t, const char*>> {};

TEST_P(KilledStage, IsNamedWithWhatItDid) {
  const auto [stage, transport] = GetParam();
  LongRun run({"--set", fmt::format("comm.transport={}", transport)});
  run.reach_step(5);
  ASSERT_EQ(run.workers().size(), 3U);
  ::kill(run.workers()[stage], SIGKILL);
  const Outcome outcome = run.motley().wait();
  EXPECT_EQ(outcome.status, 4);
  EXPECT_NE(outcome.err.find(fmt::format("stage {} (local) was killed by signal 9", stage)),
            std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("step"), std::string::npos) << outcome.err;
  run.expect_nothing_left();
}

INSTANTIATE_TEST_SUITE_P(,
                         KilledStage,
                         testing::Combine(testing::Values(0, 1, 2),
                                          testing::Values(MOTLEY_TRANSPORTS)),
                         [](const auto& each) {
                           return fmt::format("{}_{}", std::get<1>(each.param),
                                              std::get<0>(each.param));
                         });

void expect_end_by(int signal, int status) {
  LongRun run({});
  run.reach_step(3);
  ::kill(run.motley().pid(), signal);
  EXPECT_EQ(run.motley().wait().status, status);
  run.expect_nothing_left();
}

TEST(InterruptedRun, EndsWithStatus130AndNoProcess) {
  expect_end_by(SIGINT, 130);
}

// UCX installs its own handler for that signal when it is loaded.
TEST(ClosedTerminal, EndsTheRunWithStatus143) {
  expect_end_by(SIGHUP, 143);
}

TEST(KilledLauncher, TakesItsStagesAlong) {
  LongRun run({});
  run.reach_step(3);
  ::kill(run.motley().pid(), SIGKILL);
  run.motley().wait();
  run.expect_nothing_left();
}

TEST(KilledLauncher, LeavesTheTraceOfTheFirstSteps) {
  LongRun run({});
  run.reach_step(9);  // two for warming up, five recorded, one after which it is written
  ::kill(run.motley().pid(), SIGKILL);
  run.motley().wait();
  EXPECT_THAT(run.trace(), testing::HasSubstr("F0.0"));
}

}  // namespace
}  // namespace motley::test
