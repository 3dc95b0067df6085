// However a run ends, its work is saved, and its last output is a command that continues it.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include <gmock/gmock.h>

#include "base/clock.h"
#include "base/json.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using Words = std::vector<std::string>;

// Long enough to be interrupted, short enough to be repeated.
constexpr int kSteps = 600;

class Endings : public testing::Test {
 protected:
  [[nodiscard]] static Words two_stages(const Words& more = {}) {
    Words words{"--stages", "2", "--set", fmt::format("train.steps={}", kSteps)};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  [[nodiscard]] bool reaches(const std::string& run, std::ptrdiff_t step) const {
    return eventually([&] {
      const std::string text = read_text(fs::path(job_.run_dir(run)) / "metrics.jsonl");
      return std::ranges::count(text, '\n') >= step;
    });
  }

  [[nodiscard]] std::string checkpoints(const std::string& run) const {
    std::string names;
    std::error_code none;
    for (const auto& each :
         fs::directory_iterator(fs::path(job_.run_dir(run)) / "checkpoints", none)) {
      names += each.path().filename().string() + " ";
    }
    return names;
  }

  [[nodiscard]] Json report(const std::string& run) const {
    return Json::parse(read_text(fs::path(job_.run_dir(run)) / "report.json"));
  }

  [[nodiscard]] std::string log_of(const std::string& run) const {
    return read_text(fs::path(job_.run_dir(run)) / "log" / "motley.log");
  }

  // Two machines, both local.
  [[nodiscard]] std::string cluster() const {
    return job_.folder().write(
        "cluster.toml",
        "[network]\ntrusted = true\n"
        "[[machine]]\nname = \"desk\"\naddress = \"127.0.0.1\"\nshell = []\nthreads = 1\n"
        "[[machine]]\nname = \"box\"\naddress = \"127.0.0.1\"\nshell = []\nthreads = 1\n");
  }

  SmallJob job_;
};

class StopSignal : public Endings, public testing::WithParamInterface<std::pair<int, int>> {
 protected:
  static void SetUpTestSuite() {
    straight_ = std::make_unique<SmallJob>();
    ASSERT_EQ(straight_->train("run", two_stages()).status, 0);
  }

  static void TearDownTestSuite() { straight_.reset(); }

  static inline std::unique_ptr<SmallJob> straight_;  // its run is not interrupted
};

TEST_P(StopSignal, SavesTheLastStepAndPrintsTheCommandThatGoesOn) {
  const auto [signal, status] = GetParam();
  const std::string name = "it's a run";  // needs quoting in a shell
  RunningMotley run(job_.train_words(name, two_stages()));
  ASSERT_TRUE(reaches(name, 5));
  ASSERT_EQ(::kill(run.pid(), signal), 0);
  const Outcome outcome = run.wait();
  EXPECT_EQ(outcome.status, status) << outcome.err;
  const auto steps = metric_column(job_.run_dir(name), "step");
  ASSERT_LT(steps.size(), kSteps) << "it was too quick to be interrupted";
  const std::string saved = fmt::format("after step {} was saved", steps.back());
  EXPECT_THAT(outcome.err,
              AllOf(ContainsRegex("motley: stopped: .*" + saved), Not(HasSubstr("error"))));
  EXPECT_THAT(log_of(name), ContainsRegex(" info: .*" + saved));
  EXPECT_THAT(checkpoints(name), HasSubstr(fmt::format("step-{:06}", std::stoi(steps.back()))));
  EXPECT_EQ(report(name).at("ended").at("status"), status);
  const std::string command = last_line(outcome.err);
  EXPECT_THAT(command, AllOf(HasSubstr(" train "), HasSubstr("--stages 2"), HasSubstr("--resume")));
  ASSERT_EQ(run_in_shell(command, ""), 0) << command;
  EXPECT_EQ(metric_column(job_.run_dir(name), "loss"),
            metric_column(straight_->run_dir("run"), "loss"));
  EXPECT_EQ(job_.parameter_hash(name, kSteps), straight_->parameter_hash("run", kSteps));
  EXPECT_FALSE(report(name).contains("ended"));
}

INSTANTIATE_TEST_SUITE_P(,
                         StopSignal,
                         testing::Values(std::pair{SIGINT, 130},
                                         std::pair{SIGTERM, 143},
                                         std::pair{SIGHUP, 143}),
                         [](const auto& each) { return fmt::format("{}", each.param.first); });

TEST_F(Endings, OfASecondSignalIsAtOnce) {
  RunningMotley run(job_.train_words("run", two_stages({"--set", "train.steps=1000000"})));
  ASSERT_TRUE(reaches("run", 5));
  const std::vector<pid_t> workers = run.workers();
  ASSERT_EQ(workers.size(), 2U);
  ASSERT_EQ(::kill(workers[1], SIGSTOP), 0);  // so that the current step does not end
  const double at_s = now_s();
  ASSERT_EQ(::kill(run.pid(), SIGINT), 0);
  ::usleep(500'000);
  ASSERT_TRUE(process_exists(run.pid())) << "the first one lets it finish";
  ASSERT_EQ(::kill(run.pid(), SIGINT), 0);
  EXPECT_EQ(run.wait().status, 130);
  EXPECT_LT(now_s() - at_s, 3.5) << "it waited for the worker to be taken for lost";
}

// As sent by timeout(1), which signals the process and then its group; when a terminal closes, the
// kernel and the shell each send one.
TEST_F(Endings, OfTwoSignalsInOneMomentSaveTheLastStep) {
  RunningMotley run(job_.train_words("run", two_stages({"--set", "train.steps=1000000"})));
  ASSERT_TRUE(reaches("run", 5));
  ASSERT_EQ(::kill(run.pid(), SIGTERM), 0);
  ::usleep(30'000);  // so that the first signal is handled before the second arrives
  (void)::kill(run.pid(), SIGHUP);
  const Outcome outcome = run.wait();
  EXPECT_EQ(outcome.status, 143) << outcome.err;
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("ended by SIGTERM, after step "), HasSubstr("was saved")));
}

// As sent by a service manager or a shutdown, which signal all processes: the workers die before
// they can finish.
TEST_F(Endings, BySignalsToAllProcessesStartNothingAgain) {
  RunningMotley run(job_.train_words(
      "run", two_stages({"--set", "train.steps=1000000", "--set", "run.restarts=3"})));
  ASSERT_TRUE(reaches("run", 5));
  const std::vector<pid_t> workers = run.workers();
  ASSERT_EQ(workers.size(), 2U);
  ASSERT_EQ(::kill(workers[1], SIGSTOP), 0);  // so that the current step does not end
  ASSERT_EQ(::kill(run.pid(), SIGTERM), 0);
  ::usleep(100'000);
  for (const pid_t worker : workers) ASSERT_EQ(::kill(worker, SIGKILL), 0);
  const Outcome outcome = run.wait();
  EXPECT_EQ(outcome.status, 143) << outcome.err;
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("motley: stopped: ended by SIGTERM"),
                    ContainsRegex("the current step was not saved: .*was killed by signal 9"),
                    Not(HasSubstr("the run continues from"))));
  EXPECT_EQ(report("run").at("ended").at("status"), 143);
}

TEST_F(Endings, OfALostMachineNameItAndTheSameCommandStartsAgain) {
  const Words words = {"--cluster", cluster(),    "--pin", "always desk",
                       "--pin",     "always box", "--set", "train.steps=1000000"};
  RunningMotley run(job_.train_words("run", words));
  ASSERT_TRUE(reaches("run", 5));
  const std::vector<pid_t> workers = run.workers();
  ASSERT_EQ(workers.size(), 2U);
  const Json plan = Json::parse(read_text(fs::path(job_.run_dir("run")) / "plan.json"));
  const auto lost = plan.at("ranks").at(1).at("machine").get<std::string>();
  ASSERT_EQ(::kill(workers[1], SIGSTOP), 0);
  const Outcome outcome = run.wait();
  EXPECT_EQ(outcome.status, 4);
  const std::string error = outcome.err.substr(outcome.err.find("motley: error"));
  EXPECT_THAT(error, AllOf(HasSubstr(fmt::format("error: machine {} was lost", lost)),
                           HasSubstr("reported by "), Not(HasSubstr("rank "))));
  const std::string first_line = error.substr(0, error.find('\n'));
  const std::string what = first_line.substr(std::string("motley: error: ").size());
  EXPECT_THAT(log_of("run"), AllOf(HasSubstr(" error: " + what),
                                   ContainsRegex("[0-9]{4}-[0-9-]+ [0-9:]+ error: machine")));
  EXPECT_THAT(log_of("run"), HasSubstr("  cause: "));
  EXPECT_EQ(report("run").at("ended").at("status"), 4);
  EXPECT_THAT(report("run").at("ended").at("what").get<std::string>(), HasSubstr(lost));
  EXPECT_THAT(motley({"report", job_.run_dir("run")}).out, HasSubstr("ended early, with status 4"));
  const std::string again = last_line(error);
  EXPECT_THAT(again, AllOf(HasSubstr("--pin 'always desk'"), Not(HasSubstr("--resume"))));
  EXPECT_EQ(run_in_shell(again, " --stop-after 2"), 0) << again;
}

TEST_F(Endings, AsAskedToPrintTheCommandThatGoesOn) {
  const Outcome stopped = job_.train("run", two_stages({"--stop-after", "3"}));
  ASSERT_EQ(stopped.status, 0) << stopped.err;
  const std::string command = last_line(stopped.out);
  EXPECT_THAT(command, AllOf(HasSubstr("--resume"), Not(HasSubstr("--stop-after"))));
  EXPECT_EQ(run_in_shell(command, ""), 0);
  EXPECT_EQ(metric_column(job_.run_dir("run"), "step").size(), std::size_t{kSteps});
  const std::string refused = motley(job_.train_words("run", two_stages())).err;
  EXPECT_THAT(refused, HasSubstr("already holds a run"));
  EXPECT_THAT(last_line(refused), Not(HasSubstr(" train "))) << "no step is left to continue with";
}

// As with a pager or a stopped terminal.
TEST_F(Endings, AreReachedThoughNobodyReadsTheOutput) {
  ASSERT_EQ(job_.train("first", two_stages({"--stop-after", "1"})).status, 0);
  const std::string plan = job_.run_dir("first") + "/plan.json";
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  ASSERT_EQ(::fcntl(pipe[1], F_SETFL, O_NONBLOCK), 0);
  const std::string block(4096, '.');
  while (::write(pipe[1], block.data(), block.size()) > 0) {
  }
  ASSERT_EQ(::fcntl(pipe[1], F_SETFL, 0), 0);
  const std::string program = (stage_program().parent_path() / "motley").string();
  Words words = job_.train_words("run", {"--plan", plan, "--set", "train.steps=1000000"});
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(pipe[1], STDOUT_FILENO);
    ::dup2(pipe[1], STDERR_FILENO);
    ::execv(program.c_str(), argv.data());
    ::_exit(127);
  }
  ::close(pipe[1]);
  const bool trains = reaches("run", 100);
  EXPECT_TRUE(trains) << "it waits for a reader";
  ::kill(pid, trains ? SIGTERM : SIGKILL);
  EXPECT_TRUE(eventually([&] { return checkpoints("run").find("step-") != std::string::npos; }));
  // Reads the output, so that the last messages can be written.
  std::string said;
  char some[4096];
  for (ssize_t got = 0; (got = ::read(pipe[0], some, sizeof some)) > 0;) {
    said.append(some, static_cast<std::size_t>(got));
  }
  ::close(pipe[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(WEXITSTATUS(status), 143);
  EXPECT_THAT(last_line(said), HasSubstr("--resume"));
}

TEST_F(Endings, OfADryRunLeaveNothing) {
  const Outcome dry = job_.train("run", two_stages({"--dry-run"}));
  EXPECT_EQ(dry.status, 0) << dry.err;
  EXPECT_THAT(dry.out, AllOf(HasSubstr("would run steps 1 to 600"), HasSubstr("stage 1 (local)")));
  EXPECT_FALSE(fs::exists(job_.run_dir("run")));
  EXPECT_EQ(run_in_shell(last_line(dry.out), " --stop-after 2"), 0);
  const Outcome on = job_.train("run", two_stages({"--dry-run", "--resume"}));
  EXPECT_THAT(on.out, HasSubstr("would run steps 3 to 600"));
  EXPECT_EQ(job_.train("run", two_stages({"--dry-run"})).status, 3) << "a run is there";
}

TEST_F(Endings, AreSilentOrWordyAsAsked) {
  const Outcome quiet = job_.train("quiet", two_stages({"--stop-after", "2", "--quiet"}));
  EXPECT_EQ(quiet.status, 0);
  EXPECT_THAT(quiet.out + quiet.err, IsEmpty());
  EXPECT_THAT(log_of("quiet"), HasSubstr("saved "));
  const Outcome both = job_.train("both", {"--quiet", "--verbose"});
  EXPECT_EQ(both.status, 2);
  EXPECT_THAT(both.err, HasSubstr("exclude each other"));
}

}  // namespace
}  // namespace motley::test
