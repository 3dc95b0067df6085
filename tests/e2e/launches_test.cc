// A run folder has one launcher at a time, survives full disks and killed launchers, and is only
// resumed with the data and settings of its run.
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <random>

#include <gmock/gmock.h>

#include "base/json.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

using Words = std::vector<std::string>;

Words set(Words words, const Words& keys) {
  for (const std::string& key : keys) words.insert(words.end(), {"--set", key});
  return words;
}

class Launches : public testing::Test {
 protected:
  [[nodiscard]] std::size_t steps_done(const std::string& run) const {
    const std::string text = read_text(fs::path(job_.run_dir(run)) / "metrics.jsonl");
    return static_cast<std::size_t>(std::ranges::count(text, '\n'));
  }

  [[nodiscard]] bool reaches(const std::string& run, std::size_t step) const {
    return eventually([&] { return steps_done(run) >= step; });
  }

  [[nodiscard]] Words names(const std::string& run) const {
    Words found;
    for (const auto& entry : fs::directory_iterator(fs::path(job_.run_dir(run)) / "checkpoints")) {
      found.push_back(entry.path().filename().string());
    }
    std::ranges::sort(found);
    return found;
  }

  // Without the losses of steps that no launcher saw.
  void expect_same_steps(const std::string& run, const std::string& as, int steps) const {
    const Words numbers = metric_column(job_.run_dir(run), "step");
    const Words losses = metric_column(job_.run_dir(run), "loss");
    const Words all = metric_column(job_.run_dir(as), "loss");
    EXPECT_GE(numbers.size() + 5, all.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_EQ(losses[i], all.at(std::stoul(numbers[i]) - 1)) << "step " << numbers[i];
    }
    EXPECT_EQ(job_.parameter_hash(run, steps), job_.parameter_hash(as, steps));
  }

  void expect_same_run(const std::string& run, const std::string& as, int steps) const {
    EXPECT_EQ(metric_column(job_.run_dir(run), "step"), metric_column(job_.run_dir(as), "step"));
    EXPECT_EQ(metric_column(job_.run_dir(run), "loss"), metric_column(job_.run_dir(as), "loss"));
    EXPECT_EQ(job_.parameter_hash(run, steps), job_.parameter_hash(as, steps));
  }

  SmallJob job_;
};

TEST_F(Launches, HasOneLauncherAtATimeAndTheFirstIsUnharmed) {
  const Words words = set({"--stages", "2"}, {"train.steps=300", "checkpoint.every=100"});
  ASSERT_EQ(job_.train("alone", words).status, 0);
  RunningMotley first(job_.train_words("run", words));
  ASSERT_TRUE(reaches("run", 5));
  // The launcher exists while the others try, although it is stopped; none takes it for dead.
  ::kill(first.pid(), SIGSTOP);
  for (const bool resumes : {false, true}) {
    Words other = words;
    if (resumes) other.emplace_back("--resume");
    const Outcome second = job_.train("run", other);
    EXPECT_EQ(second.status, 4) << second.err;
    EXPECT_THAT(second.err, AllOf(HasSubstr("another launcher runs in"),
                                  HasSubstr(fmt::format("process {} on ", first.pid())),
                                  HasSubstr("  try:"), Not(HasSubstr("has no checkpoint yet"))));
  }
  ::kill(first.pid(), SIGCONT);
  const Outcome outcome = first.wait();
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  expect_same_run("run", "alone", 300);
}

TEST_F(Launches, GoesToOneOfTwoThatResumeAtOnce) {
  const Words words = set({"--stages", "2"}, {"train.steps=300", "checkpoint.every=50"});
  Words half = words;
  half.insert(half.end(), {"--stop-after", "20"});
  Words rest = words;
  rest.emplace_back("--resume");
  ASSERT_EQ(job_.train("alone", words).status, 0);
  ASSERT_EQ(job_.train("run", half).status, 0);
  RunningMotley one(job_.train_words("run", rest));
  RunningMotley other(job_.train_words("run", rest));
  const std::vector<int> statuses = {one.wait().status, other.wait().status};
  EXPECT_THAT(statuses, testing::UnorderedElementsAre(0, 4));
  expect_same_run("run", "alone", 300);
  EXPECT_THAT(names("run"), Each(Not(HasSubstr("partial"))));
}

TEST_F(Launches, OfAKilledLauncherIsFreeAtOnce) {
  const Words words = set({"--stages", "2"}, {"train.steps=300", "checkpoint.every=10"});
  ASSERT_EQ(job_.train("alone", words).status, 0);
  RunningMotley killed(job_.train_words("run", words));
  ASSERT_TRUE(reaches("run", 30));
  ::kill(killed.pid(), SIGKILL);
  killed.wait();
  Words rest = words;
  rest.emplace_back("--resume");
  const Outcome resumed = job_.train("run", rest);
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  expect_same_steps("run", "alone", 300);
  EXPECT_THAT(names("run"), Each(Not(HasSubstr("partial"))));
}

// A second machine sees a copy of the folder in its place, as from a backup or a stale mount. The
// copy counts as machine-local, and files written there do not count as written in the launcher's
// folder.
TEST_F(Launches, IsNotTakenForItsCopy) {
  if (::geteuid() != 0) GTEST_SKIP() << "another view of the file system needs root";
  ASSERT_EQ(job_.train("run", {"--stop-after", "2"}).status, 0);
  const std::string run = job_.run_dir("run");
  const std::string copy = job_.run_dir("copy");
  fs::copy(run, copy, fs::copy_options::recursive);
  const std::string view = fmt::format("mount --bind {} {} && exec \\\"$@\\\"", copy, run);
  const std::string cluster = job_.folder().write(
      "cluster.toml",
      fmt::format("[network]\ntrusted = true\n[[machine]]\nname = \"a\"\naddress = "
                  "\"127.0.0.1\"\nshell = []\nthreads = 1\n"
                  "[[machine]]\nname = \"b\"\naddress = \"127.0.0.1\"\nshell = [\"unshare\", "
                  "\"-m\", \"sh\", \"-c\", "
                  "\"{}\", \"sh\"]\nthreads = 1\n",
                  view));
  const Outcome outcome =
      job_.train("run", {"--resume", "--cluster", cluster, "--set", "parallel.cuts=[3]"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(fs::exists(fs::path(copy) / "store.json"));
  const std::string mine = "checkpoints/step-000050/model-00001-of-00002.safetensors";
  EXPECT_TRUE(fs::exists(fs::path(copy) / mine)) << "as a copy of what lies in the other";
  EXPECT_FALSE(fs::equivalent(fs::path(copy) / mine, fs::path(run) / mine));
  EXPECT_EQ(motley({"ckpt", "verify", run}).status, 0) << "with the copies it has all";
}

TEST_F(Launches, ShowsNothingToOthers) {
  const mode_t before = ::umask(0);
  RunningMotley motley(job_.train_words(
      "run", set({"--stages", "2"}, {"train.steps=1000000", "checkpoint.every=5"})));
  ASSERT_TRUE(reaches("run", 20));
  for (const pid_t pid : motley.workers()) {
    EXPECT_THAT(read_text(fmt::format("/proc/{}/limits", pid)),
                testing::ContainsRegex("Max core file size +1 +1 "));
  }
  EXPECT_THAT(read_text(fmt::format("/proc/{}/limits", motley.pid())),
              testing::ContainsRegex("Max core file size +1 +1 "));
  ::kill(motley.pid(), SIGINT);
  EXPECT_EQ(motley.wait().status, 130);
  ::umask(before);
  std::size_t seen = 0;
  for (const auto& entry : fs::recursive_directory_iterator(job_.run_dir("run"))) {
    struct stat info {};

    ASSERT_EQ(::stat(entry.path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0077, 0U) << entry.path();
    ++seen;
  }
  EXPECT_GT(seen, 10U);
}

// Three ranks on separate machines; one can be given a full disk.
class FullDisk : public Launches {
 protected:
  Words words(const std::string& flag) {
    const auto cluster_text = [](const std::string& shell_of_b) {
      std::string text = "[network]\ntrusted = true\n";
      for (const std::string name : {"a", "b", "c"}) {
        text += fmt::format(
            "[[machine]]\nname = \"{}\"\naddress = \"127.0.0.1\"\nthreads = 1\nshell = [{}]\n",
            name, name == "b" ? shell_of_b : "");
      }
      return text;
    };
    const std::string cluster =
        job_.folder().write("cluster.toml", cluster_text(fmt::format("\"env\", \"LD_PRELOAD={}\", "
                                                                     "\"MOTLEY_FULL_WHILE={}\"",
                                                                     MOTLEY_SLOW_DISK, flag)));
    Words words = SmallJob::measured_with({}, cluster_text(""));
    words.insert(words.end(), {"--cluster", cluster});
    return set(words, {"train.steps=400", "checkpoint.every=20", "checkpoint.keep=0",
                       "parallel.cuts=[2, 4]"});
  }
};

TEST_F(FullDisk, OfOneRankOfThreeDoesNotEndTheRun) {
  const fs::path flag = job_.folder() / "full";
  const Words train = words(flag.string());
  ASSERT_EQ(job_.train("alone", train).status, 0);
  std::ofstream(flag) << "full";
  RunningMotley motley(job_.train_words("run", train));
  ASSERT_TRUE(reaches("run", 45));
  EXPECT_THAT(names("run"), Not(Contains("step-000020")));
  fs::remove(flag);
  const Outcome outcome = motley.wait();
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("step 20 was not saved: stage 1 (b): cannot write"),
                    HasSubstr("No space left on device"), HasSubstr("and the run continues")));
  EXPECT_THAT(names("run"), AllOf(Contains("step-000400"), Contains("step-000380"),
                                  Not(Contains("step-000020")), Each(Not(HasSubstr("partial")))));
  expect_same_run("run", "alone", 400);
}

TEST_F(FullDisk, AtTheEndIsAnErrorAndTheCheckpointBeforeStands) {
  const fs::path flag = job_.folder() / "full";
  Words train = words(flag.string());
  train.insert(train.end(), {"--stop-after", "20"});
  ASSERT_EQ(job_.train("run", train).status, 0);
  std::ofstream(flag) << "full";
  train.back() = "30";
  train.emplace_back("--resume");
  const Outcome outcome = job_.train("run", train);
  EXPECT_EQ(outcome.status, 7) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("the last step was completed but not saved"),
                                 HasSubstr("The checkpoint of step 20 remains")));
  EXPECT_EQ(steps_done("run"), 30U);
  EXPECT_THAT(names("run"), testing::ElementsAre("step-000020"));
  fs::remove(flag);
  EXPECT_EQ(job_.train("run", train).status, 0);
}

class Diverged : public Launches {
 protected:
  static Words words(const Words& more) {
    Words words = SmallJob::measured_with({"train.optimizer=sgd"});
    words.insert(words.end(), {"--stages", "2"});
    words = set(words, {"train.lr=1e6", "train.clip=0", "train.warmup_steps=0", "train.steps=600",
                        "train.weight_decay=1"});
    return set(words, more);
  }
};

TEST_F(Diverged, EndsAfterManySkippedStepsInARow) {
  const Outcome outcome = job_.train("run", words({"train.max_skipped=7"}));
  EXPECT_EQ(outcome.status, 9) << outcome.err;
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("7 consecutive steps were skipped"), HasSubstr("train.lr")));
  const auto skipped = metric_column(job_.run_dir("run"), "skipped");
  ASSERT_GE(skipped.size(), 8U);
  ASSERT_LT(skipped.size(), 100U);
  EXPECT_THAT(Words(skipped.end() - 7, skipped.end()), Each("true"));
  EXPECT_EQ(skipped[skipped.size() - 8], "false");
}

TEST_F(Diverged, KeepsTheLastGoodCheckpoint) {
  const Outcome outcome = job_.train("run", words({"checkpoint.every=1", "checkpoint.keep=1"}));
  EXPECT_EQ(outcome.status, 9) << outcome.err;
  const Words kept = names("run");
  Words committed;
  std::ranges::copy_if(kept, std::back_inserter(committed),
                       [](const std::string& name) { return name.starts_with("step-"); });
  ASSERT_EQ(committed.size(), 1U);
  EXPECT_EQ(motley({"ckpt", "verify", job_.run_dir("run") + "/checkpoints/" + committed[0]}).status,
            0);
  // It is of a step that was not skipped.
  const auto skipped = metric_column(job_.run_dir("run"), "skipped");
  const auto step = static_cast<std::size_t>(std::stoi(committed[0].substr(5)));
  ASSERT_LE(step, skipped.size());
  EXPECT_EQ(skipped[step - 1], "false");
}

class OtherData : public Launches {
 protected:
  OtherData() { write_text('a'); }

  void write_text(char letter) const {
    std::string text;
    for (int i = 0; i < 4000; ++i) text += static_cast<char>(letter + i * i % 7);
    job_.folder().write("text.txt", text);
  }

  Outcome resume(const Words& keys) {
    Words words = set({"--resume", "--stop-after", std::to_string(++last_step_)}, data_);
    return job_.train("run", set(words, keys));
  }

  const Words data_ = {"data.kind=text",
                       fmt::format("data.path={}", (job_.folder() / "text.txt").string()),
                       "data.holdout=0.2"};
  int last_step_ = 5;
};

TEST_F(OtherData, IsRefusedOnResumeUnlessItIsAccepted) {
  ASSERT_EQ(job_.train("run", set({"--stop-after", "5"}, data_)).status, 0);
  ASSERT_EQ(resume({}).status, 0);
  write_text('b');
  const Outcome data = resume({});
  EXPECT_EQ(data.status, 8);
  EXPECT_THAT(data.err,
              AllOf(HasSubstr("the data differs from the run's"), HasSubstr("--allow-changes")));
  const Outcome accepted = resume({"data.changed=accept"});
  EXPECT_EQ(accepted.status, 0) << accepted.err;
  // From here on this is the run's data.
  EXPECT_EQ(resume({}).status, 0);
}

TEST_F(OtherData, IsListedAndTakenWhenItIsAllowed) {
  ASSERT_EQ(job_.train("run", set({"--stop-after", "5"}, data_)).status, 0);
  const std::string log = read_text(fs::path(job_.run_dir("run")) / "log/0.log");
  const Words changes = {"train.seed=2", "data.holdout=0.3", "train.lr=0.01",
                         "train.global_batch=4", "run.trace_steps=0"};
  const Outcome refused = resume(changes);
  EXPECT_EQ(refused.status, 3);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("data.holdout 0.2 -> 0.3, train.global_batch 8 -> 4, train.lr 0.003 "
                              "-> 0.01, train.seed 1 -> 2, the learning rate 0.00"),
                    HasSubstr("--allow-changes")));
  EXPECT_EQ(read_text(fs::path(job_.run_dir("run")) / "log/0.log"), log) << "a worker was started";
  write_text('b');
  Words words = set({"--resume", "--allow-changes", "--stop-after", "7"}, data_);
  const Outcome allowed = job_.train("run", set(words, changes));
  ASSERT_EQ(allowed.status, 0) << allowed.err;
  EXPECT_THAT(allowed.err, HasSubstr("the run continues with data.holdout 0.2 -> 0.3"));
  // The checkpoint of step 7 already contains the changes.
  const std::string way_on = allowed.out.substr(allowed.out.find("continue with"));
  EXPECT_THAT(way_on, AllOf(HasSubstr("--resume"), Not(HasSubstr("--allow-changes"))));
  EXPECT_THAT(metric_column(job_.run_dir("run"), "step"), testing::SizeIs(7));
}

TEST_F(Launches, KeepsItsMicroBatchOnResume) {
  const Words open = {"train.micro_batch=0"};
  ASSERT_EQ(job_.train("first", set({"--stop-after", "2"}, {"train.micro_batch=1"})).status, 0);
  const Outcome kept = job_.train("first", set({"--resume", "--stop-after", "4"}, open));
  ASSERT_EQ(kept.status, 0) << kept.err;
  const Json plan = Json::parse(read_text(fs::path(job_.run_dir("first")) / "plan.json"));
  EXPECT_EQ(plan.at("micro_batch"), 1);
  EXPECT_THAT(read_text(fs::path(job_.run_dir("first")) / "config.toml"),
              HasSubstr("micro_batch = 1\n"));
  EXPECT_THAT(kept.err, Not(HasSubstr("the run continues with")));
  const Words other = set({"--resume", "--stop-after", "6"}, {"train.micro_batch=4"});
  const Outcome refused = job_.train("first", other);
  EXPECT_EQ(refused.status, 3);
  EXPECT_THAT(refused.err, HasSubstr("train.micro_batch 1 -> 4"));
  Words allowed = other;
  allowed.emplace_back("--allow-changes");
  EXPECT_EQ(job_.train("first", allowed).status, 0);
}

// A profile whose times are proportional to the micro-batch, each at most 5 % off, in another way
// for each seed: as several measurements of one machine.
Json measured_again(Json profile, unsigned seed) {
  std::minstd_rand random(seed);
  std::uniform_real_distribution<double> error(0.95, 1.05);
  for (Json& device : profile.at("devices")) {
    for (Json& samples : device.at("layers")) {
      const Json largest = samples.back();
      for (Json& sample : samples) {
        const double share =
            sample.at("micro_batch").get<double>() / largest.at("micro_batch").get<double>();
        const double measured = share * error(random);
        for (const char* time :
             {"forward_s", "backward_s", "backward_input_s", "backward_weight_s"}) {
          sample[time] = largest.at(time).get<double>() * measured;
        }
      }
    }
  }
  return profile;
}

// The planner chooses the micro-batch by measurements, which differ between starts.
TEST(SameCommand, GivesTheSameBits) {
  const SmallJob job;
  const Words left_open = {"train.micro_batch=0", "model.context=128",    "model.width=128",
                           "train.steps=4",       "train.warmup_steps=2", "train.global_batch=16",
                           "run.threads=1"};
  const Words measured = SmallJob::measured_with(left_open);
  const Json profile = Json::parse(read_text(measured.back()));
  unsigned starts = 0;
  const auto start = [&](const std::string& name, const Words& more) {
    Words words = measured;
    const std::string text = measured_again(profile, ++starts).dump();
    words.back() = job.folder().write(name + "-profile.json", text);
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = job.train(name, words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome;
  };
  const auto hash_of = [&](const std::string& name, const Words& more) {
    start(name, more);
    return job.parameter_hash(name, 4);
  };
  const std::string hash = hash_of("first", {});
  EXPECT_EQ(hash_of("second", {}), hash);
  start("resumed", {"--stop-after", "2"});
  EXPECT_EQ(hash_of("resumed", {"--resume"}), hash);
  for (const char* stages : {"2", "3"}) {
    EXPECT_EQ(hash_of(stages, {"--stages", stages}), hash) << stages;
  }
}

}  // namespace
}  // namespace motley::test
