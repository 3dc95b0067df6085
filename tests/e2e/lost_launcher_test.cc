// The launcher is killed or stopped: its workers save their step, and the next launch continues
// from there. Moments are random; the seed is part of a failure's message. Repeat with
// --gtest_repeat.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "e2e/own_folders.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;
using testing::Not;

class LostLauncher : public testing::Test {
 protected:
  // `every`: steps between checkpoints; 1000 = only the last one.
  [[nodiscard]] std::vector<std::string> words(int every,
                                               const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"--stages", "2",
                                      "--set",    fmt::format("train.steps={}", steps_),
                                      "--set",    fmt::format("checkpoint.every={}", every),
                                      "--set",    "checkpoint.keep=3"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  [[nodiscard]] std::int64_t steps_done() const {
    const std::string text = read_text(fs::path(job_.run_dir("run")) / "metrics.jsonl");
    return std::ranges::count(text, '\n');
  }

  // The step of the newest committed one; 0 = none.
  [[nodiscard]] std::int64_t newest_checkpoint() const {
    std::int64_t newest = 0;
    std::error_code code;
    const fs::path folder = fs::path(job_.run_dir("run")) / "checkpoints";
    for (const auto& entry : fs::directory_iterator(folder, code)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("step-"))
        newest = std::max<std::int64_t>(newest, std::stoll(name.substr(5)));
    }
    return newest;
  }

  // Waits until the run has done a random number of steps, and then for a part of a step.
  void wait_for_a_moment() {
    const std::int64_t steps = std::uniform_int_distribution(3, steps_ / 2)(random_);
    ASSERT_TRUE(eventually([&] { return steps_done() >= steps; }));
    std::this_thread::sleep_for(
        std::chrono::microseconds(std::uniform_int_distribution(0, 10000)(random_)));
  }

  // Resumes the run; the step after which it continued.
  std::int64_t resume(const std::vector<std::string>& words) {
    const double begun_s = now_s();
    const std::int64_t before = steps_done();
    std::vector<std::string> again = job_.train_words("run", words);
    again.emplace_back("--resume");
    RunningMotley run(again);
    const std::string mark = "resuming after step ";
    EXPECT_TRUE(eventually([&] { return run.printed().find(mark) != std::string::npos; }));
    const std::int64_t from =
        std::stoll(run.printed().substr(run.printed().find(mark) + mark.size()));
    EXPECT_TRUE(eventually([&] { return steps_done() > std::max(before, from); }));
    fmt::print("seed {}: {} steps recorded, resumed after step {}, next step done in {:.2f} s\n",
               seed_, before, from, now_s() - begun_s);
    const Outcome outcome = run.wait();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    report_ = outcome.err;
    return from;
  }

  void expect_undisturbed_parameters(const std::vector<std::string>& words) {
    const Outcome undisturbed = job_.train("undisturbed", words);
    ASSERT_EQ(undisturbed.status, 0) << undisturbed.err;
    EXPECT_EQ(job_.parameter_hash("run", steps_), job_.parameter_hash("undisturbed", steps_));
  }

  SmallJob job_;
  int steps_ = 400;
  const unsigned seed_ = std::random_device()();
  std::mt19937 random_{seed_};
  std::string report_;  // of the resumed run
};

TEST_F(LostLauncher, LosesNoStepWhenItIsKilled) {
  SCOPED_TRACE(seed_);
  RunningMotley run(job_.train_words("run", words(1000)));
  wait_for_a_moment();
  const std::vector<pid_t> workers = run.workers();
  ASSERT_EQ(workers.size(), 2U);
  ::kill(run.pid(), SIGKILL);
  const std::int64_t recorded = steps_done();
  EXPECT_GE(resume(words(1000)), recorded);
  EXPECT_THAT(report_, HasSubstr("it is committed now"));
  EXPECT_TRUE(std::ranges::none_of(workers, process_exists));
  expect_undisturbed_parameters(words(1000));
}

TEST_F(LostLauncher, LosesNoStepWhileItCommits) {
  SCOPED_TRACE(seed_);
  // Most of the time of a step is the commit of the one before.
  steps_ = 80;
  RunningMotley run(job_.train_words("run", words(1)));
  wait_for_a_moment();
  ::kill(run.pid(), SIGKILL);
  const std::int64_t recorded = steps_done();
  EXPECT_GE(resume(words(1)), recorded);
  EXPECT_THAT(report_, Not(HasSubstr("not used")));
  expect_undisturbed_parameters(words(1));
}

TEST_F(LostLauncher, FallsBackToTheNewestCheckpointIfAWorkerIsLostWithIt) {
  SCOPED_TRACE(seed_);
  RunningMotley run(job_.train_words("run", words(10)));
  wait_for_a_moment();
  const std::vector<pid_t> workers = run.workers();
  ASSERT_EQ(workers.size(), 2U);
  for (const pid_t pid : {run.pid(), workers[seed_ % 2]}) ::kill(pid, SIGKILL);
  const std::int64_t saved = newest_checkpoint();
  EXPECT_GE(resume(words(10)), saved);
  expect_undisturbed_parameters(words(10));
}

// Longer than the leases of its workers.
TEST_F(LostLauncher, GoesOnByItselfWhenItWasOnlyStopped) {
  SCOPED_TRACE(seed_);
  const auto patient = words(1000, {"--set", "comm.patience_s=2", "--set", "run.restarts=3"});
  RunningMotley run(job_.train_words("run", patient));
  wait_for_a_moment();
  const std::vector<pid_t> workers = run.workers();
  ASSERT_EQ(workers.size(), 2U);
  ::kill(run.pid(), SIGSTOP);
  EXPECT_TRUE(eventually([&] { return std::ranges::none_of(workers, process_exists); }));
  ::kill(run.pid(), SIGCONT);
  const Outcome outcome = run.wait();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("it is committed now"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("repeated")));
  expect_undisturbed_parameters(patient);
}

// Each machine has a part of the save in its own folder.
TEST_F(OwnFolders, LoseNoStepWithTheirLauncher) {
  const std::vector<std::string> longer = {"--set", "train.steps=150", "--set",
                                           "checkpoint.every=1000"};
  const auto steps_done = [this] {
    return std::ranges::count(read_text(folder_of("desk") / "metrics.jsonl"), '\n');
  };
  RunningMotley run(job_.train_words("run", words(all_, longer)));
  ASSERT_TRUE(eventually([&] { return steps_done() >= 20; })) << run.reported();
  ::kill(run.pid(), SIGKILL);
  const auto recorded = steps_done();
  std::vector<std::string> resume = longer;
  resume.emplace_back("--resume");
  const Outcome outcome = train(all_, resume);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("it is committed now"));
  const std::string mark = "resuming after step ";
  ASSERT_THAT(outcome.out, HasSubstr(mark));
  EXPECT_GE(std::stoll(outcome.out.substr(outcome.out.find(mark) + mark.size())), recorded);
  EXPECT_EQ(job_.parameter_hash("run", 150), undisturbed_hash(150));
}

}  // namespace
}  // namespace motley::test
