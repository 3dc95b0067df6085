// A run that loses processes or a machine restarts automatically, with the same bits.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::vector<std::string> kJob = {"--set", "train.steps=60",   "--set", "checkpoint.every=10",
                                       "--set", "checkpoint.keep=0"};

std::vector<std::string> with(std::vector<std::string> words,
                              const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::size_t steps_done(const SmallJob& job) {
  const std::string text = read_text(std::filesystem::path(job.run_dir("run")) / "metrics.jsonl");
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

std::size_t count_of(const std::string& text, const std::string& words) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(words, at)) != text.npos; at += words.size()) ++count;
  return count;
}

class Recovery : public testing::Test {
 protected:
  // The parameter hash of an uninterrupted run.
  std::string undisturbed_hash(const std::vector<std::string>& more) {
    EXPECT_EQ(job_.train("undisturbed", with(kJob, more)).status, 0);
    return job_.parameter_hash("undisturbed", 60);
  }

  void expect_whole(const std::string& hash) {
    EXPECT_EQ(job_.parameter_hash("run", 60), hash);
    EXPECT_EQ(steps_done(job_), 60U) << "each step stands once in the metrics";
  }

  SmallJob job_;
};

TEST_F(Recovery, FromEachKilledStage) {
  const std::string hash = undisturbed_hash({"--stages", "3"});
  RunningMotley run(
      job_.train_words("run", with(kJob, {"--stages", "3", "--set", "run.restarts=3"})));
  std::vector<pid_t> all;
  for (std::size_t stage = 0; stage < 3; ++stage) {
    const std::size_t from = 12 + 15 * stage;
    const std::filesystem::path saved =
        fmt::format("{}/checkpoints/step-{:06}", job_.run_dir("run"), from / 10 * 10);
    ASSERT_TRUE(eventually([&] {
      return steps_done(job_) >= from && std::filesystem::exists(saved) &&
             run.workers().size() == 3;
    }));
    const std::vector<pid_t> workers = run.workers();
    all.insert(all.end(), workers.begin(), workers.end());
    ::kill(workers[stage], SIGKILL);
    ASSERT_TRUE(eventually([&] { return !process_exists(workers[stage]); }));
    ASSERT_TRUE(eventually([&] { return steps_done(job_) < from || run.workers() != workers; }));
  }
  const Outcome outcome = run.wait();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("was killed by signal 9"));
  // On a busy computer the next checkpoint may be saved between this process's check and its
  // signal.
  EXPECT_THAT(outcome.err, ::testing::ContainsRegex("the run continues from step [12]0[^0-9]"));
  EXPECT_THAT(outcome.err, HasSubstr("(restart 1 of 3)"));
  EXPECT_THAT(outcome.err, HasSubstr("s after the failure"));
  const std::string kept = read_text(std::filesystem::path(job_.run_dir("run")) / "log/motley.log");
  EXPECT_EQ(count_of(kept, "s after the failure"), count_of(outcome.err, "s after the failure"));
  expect_whole(hash);
  for (const pid_t pid : all) EXPECT_FALSE(process_exists(pid));
}

TEST_F(Recovery, BeginsAnewWhereNothingWasSavedYet) {
  const std::string hash = undisturbed_hash({});
  RunningMotley run(job_.train_words("run", with(kJob, {"--set", "run.restarts=1"})));
  ASSERT_TRUE(eventually([&] { return run.workers().size() == 1 && steps_done(job_) >= 1; }));
  ::kill(run.workers()[0], SIGKILL);
  const Outcome outcome = run.wait();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  expect_whole(hash);
}

// A worker that dies at every start.
TEST_F(Recovery, EndsAfterItsRestarts) {
  const std::string cluster = job_.folder().write("cluster.toml",
                                                  "[[machine]]\nname = \"local\"\nthreads = 1\n"
                                                  "shell = [\"sh\", \"-c\", \"case $0 in env) kill "
                                                  "-9 $$;; esac; exec \\\"$0\\\" \\\"$@\\\"\"]\n");
  std::vector<std::string> words = {"--cluster", cluster, "--set", "run.restarts=2"};
  const Outcome planned = job_.train("planned", {"--stop-after", "1"});
  ASSERT_EQ(planned.status, 0) << planned.err;
  words.insert(words.end(), {"--plan", job_.run_dir("planned") + "/plan.json"});
  const Outcome outcome = job_.train("run", words);
  EXPECT_EQ(outcome.status, 4) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("(restart 2 of 2)"));
  EXPECT_THAT(outcome.err, HasSubstr("2 times without reaching a new checkpoint"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("restart 3")));
}

// The second of two machines does not answer while a file "gone" exists, and kills its workers at
// their start while a file "deadly" exists.
class RecoveryOfTwo : public Recovery {
 protected:
  RecoveryOfTwo()
      : cluster_(job_.folder().write(
            "cluster.toml",
            fmt::format(
                "{}shell = [\"sh\", \"-c\", "
                "\"test -e {} && exit 255; case $0 in env) test -e {} && kill -9 $$;; esac; "
                "exec \\\"$0\\\" \\\"$@\\\"\"]\n",
                kDeskAndBox,
                (job_.folder() / "gone").string(),
                (job_.folder() / "deadly").string()))) {}

  [[nodiscard]] std::vector<std::string> words() const {
    return job_.train_words(
        "run", with(with(kJob, SmallJob::measured_with({}, kDeskAndBox)),
                    {"--cluster", cluster_, "--pin", "always desk", "--pin", "always box", "--set",
                     "parallel.replicas=false", "--set", "run.restarts=3"}));
  }

  [[nodiscard]] const std::string& cluster() const { return cluster_; }

  // Also kills its worker, the last one.
  void take_box_away(const RunningMotley& run) const {
    job_.folder().write("gone", "");
    ::kill(run.workers().back(), SIGKILL);
  }

  // The other machine continues alone meanwhile, then loses its worker.
  Outcome without_box_for_a_while(RunningMotley& run) const {
    take_box_away(run);
    EXPECT_TRUE(eventually([&] { return run.workers().size() == 1 && steps_done(job_) >= 22; }));
    std::filesystem::remove(job_.folder() / "gone");
    for (const pid_t worker : run.workers()) ::kill(worker, SIGKILL);
    const Outcome outcome = run.wait();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("a new plan: one stage on desk"));
    return outcome;
  }

 private:
  std::string cluster_;
};

TEST_F(RecoveryOfTwo, GoesOnWithoutAMachineThatIsGone) {
  const std::string hash = undisturbed_hash({"--stages", "2"});
  RunningMotley run(words());
  ASSERT_TRUE(eventually([&] { return steps_done(job_) >= 12 && run.workers().size() == 2; }));
  take_box_away(run);
  const Outcome outcome = run.wait();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("box does not answer and is left out"));
  EXPECT_THAT(outcome.err, HasSubstr("a new plan: one stage on desk"));
  expect_whole(hash);
}

// It answers, but its worker fails each time.
TEST_F(RecoveryOfTwo, GoesOnWithoutAMachineWhoseWorkerDiesEachTime) {
  const std::string hash = undisturbed_hash({"--stages", "2"});
  RunningMotley run(words());
  ASSERT_TRUE(eventually([&] { return steps_done(job_) >= 12 && run.workers().size() == 2; }));
  job_.folder().write("deadly", "");
  ::kill(run.workers().back(), SIGKILL);
  const Outcome outcome = run.wait();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("box is left out, since it alone has failed twice in a row"));
  EXPECT_THAT(outcome.err, HasSubstr("a new plan: one stage on desk"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("(restart ")));
  expect_whole(hash);
}

TEST_F(RecoveryOfTwo, TakesAMachineBackThatAnswersAgain) {
  const std::string hash = undisturbed_hash({"--stages", "2"});
  RunningMotley run(words());
  ASSERT_TRUE(eventually([&] { return steps_done(job_) >= 12 && run.workers().size() == 2; }));
  const Outcome outcome = without_box_for_a_while(run);
  EXPECT_THAT(outcome.err, HasSubstr("a new plan: 2 stages on box, desk"));
  expect_whole(hash);
}

// The launch without it has no replicas and saves; with the original plan all-reduces then round
// differently.
TEST_F(RecoveryOfTwo, TakesAMachineBackForItsReplicasAndSaysThatSumsAreRoundedOtherwise) {
  const Outcome planned = job_.train("planned", {"--stages", "2", "--stop-after", "1"});
  ASSERT_EQ(planned.status, 0) << planned.err;
  const std::string replicas = job_.changed_plan("planned", [](Json& plan) {
    Json chunk = plan["chunks"][0];
    chunk["layer_count"] =
        chunk["layer_count"].get<int>() + plan["chunks"][1]["layer_count"].get<int>();
    const int micro_batches = plan["micro_batches"];
    chunk["replicas"] = {{{"rank", 0}, {"micro_batches", micro_batches / 2}},
                         {{"rank", 1}, {"micro_batches", micro_batches - micro_batches / 2}}};
    plan["chunks"] = Json::array({chunk});
    plan["ranks"][0]["machine"] = "desk";
    plan["ranks"][1]["machine"] = "box";
  });
  const std::vector<std::string> more = {
      "--cluster", cluster(),        "--plan", replicas,
      "--set",     "run.restarts=3", "--set",  "checkpoint.every=10"};
  RunningMotley run(job_.train_words("run", with({"--set", "train.steps=60"}, more)));
  ASSERT_TRUE(eventually([&] { return steps_done(job_) >= 2 && run.workers().size() == 2; }));
  const Outcome outcome = without_box_for_a_while(run);
  EXPECT_THAT(
      outcome.err,
      HasSubstr(
          "warning: the plan has 2 replicas instead of no replicas: sums are rounded differently"));
  EXPECT_EQ(steps_done(job_), 60U);
}

}  // namespace
}  // namespace motley::test
