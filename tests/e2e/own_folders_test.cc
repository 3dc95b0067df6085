// A run whose machines have run folders of their own: no file goes to another machine but by the
// ranks' connections, and the run is the same to the bit as in one folder.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/small_job.h"

namespace motley::test {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::HasSubstr;

// The machines are all this one; what makes them several is where each keeps its runs.
class OwnFolders : public testing::Test {
 protected:
  // `names`: of "desk", which is where the launcher is, "box" and "lap".
  [[nodiscard]] std::string cluster_of(const std::vector<std::string>& names) const {
    std::string text = kNetwork;
    std::string file = "cluster";
    for (const std::string& name : names) {
      text += entry(name);
      if (name != "desk")
        text += fmt::format("runs_dir = \"{}\"\n", (job_.folder() / name).string());
      file += "-" + name;
    }
    return job_.folder().write(file + ".toml", text);
  }

  static std::string entry(const std::string& name) {
    return fmt::format("[[machine]]\nname = \"{}\"\naddress = \"127.0.0.1\"\nthreads = 1\n", name);
  }

  // All of the machines compute.
  [[nodiscard]] std::vector<std::string> words(const std::vector<std::string>& machines,
                                               const std::vector<std::string>& more = {}) const {
    std::string all;
    for (const std::string& machine : all_) all += entry(machine);
    std::vector<std::string> words = SmallJob::measured_with({"profile.seconds=2"}, kNetwork + all);
    words.insert(words.end(), {"--cluster", cluster_of(machines)});
    for (const char* setting : {"train.steps=30", "checkpoint.every=5"}) {
      words.insert(words.end(), {"--set", setting});
    }
    // What rounds alike whoever holds which layers.
    for (const char* setting : {"parallel.replicas=false", "compression.activations=none"}) {
      words.insert(words.end(), {"--set", setting});
    }
    for (const std::string& machine : machines) {
      words.insert(words.end(), {"--pin", "always " + machine});
    }
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  [[nodiscard]] Outcome train(const std::vector<std::string>& machines,
                              const std::vector<std::string>& more = {}) const {
    return job_.train("run", words(machines, more));
  }

  // Of a run that nothing happens to, in one folder.
  static std::string undisturbed_hash(int steps = 30) {
    static std::map<int, std::string> hashes;
    std::string& hash = hashes[steps];
    if (hash.empty()) {
      const SmallJob job;
      EXPECT_EQ(job.train("run", {"--set", fmt::format("train.steps={}", steps)}).status, 0);
      hash = job.parameter_hash("run", steps);
    }
    return hash;
  }

  [[nodiscard]] fs::path folder_of(const std::string& machine) const {
    return machine == "desk" ? fs::path(job_.run_dir("run")) : job_.folder() / machine / "run";
  }

  // How many files with tensors a machine has of a step.
  [[nodiscard]] int files_of(const std::string& machine, int step) const {
    int count = 0;
    std::error_code code;
    const fs::path part = folder_of(machine) / fmt::format("checkpoints/step-{:06}", step);
    for (const auto& entry : fs::directory_iterator(part, code)) {
      count += entry.path().extension() == ".safetensors" ? 1 : 0;
    }
    return count;
  }

  // Whether the launcher has committed a step from this one on.
  [[nodiscard]] bool has_part(int step) const {
    std::error_code code;
    const fs::path folder = folder_of("desk") / "checkpoints";
    for (const auto& entry : fs::directory_iterator(folder, code)) {
      if (entry.path().filename() >= fmt::format("step-{:06}", step)) return true;
    }
    return false;
  }

  static inline const std::string kNetwork = "[network]\ntrusted = true\n";
  const std::vector<std::string> all_ = {"desk", "box", "lap"};
  SmallJob job_;
};

TEST_F(OwnFolders, HoldWhatTheirMachinesWroteAndTheRunGoesOnFromThem) {
  const std::string hash = undisturbed_hash();
  const Outcome begun = train(all_, {"--stop-after", "10", "--set", "checkpoint.copies=0"});
  ASSERT_EQ(begun.status, 0) << begun.err;
  for (const std::string& machine : all_) EXPECT_EQ(files_of(machine, 10), 2) << machine;
  const Outcome resumed = train(all_, {"--resume", "--set", "checkpoint.copies=0"});
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_EQ(job_.parameter_hash("run", 30), hash);
  for (const std::string& machine : all_) EXPECT_EQ(files_of(machine, 30), 2) << machine;
}

TEST_F(OwnFolders, AreReadByOtherPlansOnFewerMachines) {
  const std::string hash = undisturbed_hash();
  ASSERT_EQ(train(all_, {"--stop-after", "10"}).status, 0);
  // The last machine computes nothing more and still has what the others need.
  std::vector<std::string> two = words({"desk", "box"}, {"--resume", "--stop-after", "20"});
  *std::ranges::find(two, cluster_of({"desk", "box"})) = cluster_of(all_);
  two.insert(two.end(), {"--pin", "never lap"});
  const Outcome fewer = job_.train("run", two);
  ASSERT_EQ(fewer.status, 0) << fewer.err;
  const Outcome again = train(all_, {"--resume"});
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(job_.parameter_hash("run", 30), hash);
}

TEST_F(OwnFolders, AreToldApartFromThoseOfAnotherRun) {
  ASSERT_EQ(train(all_, {"--stop-after", "5"}).status, 0);
  fs::remove_all(folder_of("desk"));
  const Outcome fresh = train(all_);
  EXPECT_EQ(fresh.status, 3) << fresh.err;
  EXPECT_THAT(fresh.err, AllOf(HasSubstr("already holds a run"), HasSubstr("--resume")));
}

TEST_F(OwnFolders, OfWhichOneIsGoneAreNamed) {
  ASSERT_EQ(train(all_, {"--stop-after", "10", "--set", "checkpoint.copies=0"}).status, 0);
  fs::remove_all(folder_of("lap"));
  const Outcome resumed = train(all_, {"--resume", "--set", "checkpoint.copies=0"});
  EXPECT_EQ(resumed.status, 7) << resumed.err;
  EXPECT_THAT(resumed.err,
              AllOf(HasSubstr("of step 10"), HasSubstr("is on none of the machines that answer")));
}

TEST_F(OwnFolders, OutlastAKilledStage) {
  constexpr int kSteps = 300;
  const std::string hash = undisturbed_hash(kSteps);
  RunningMotley run(job_.train_words(
      "run", words(all_, {"--set", "run.restarts=3", "--set", "train.steps=300"})));
  ASSERT_TRUE(eventually([&] { return has_part(20) && run.workers().size() == 3; }));
  ::kill(run.workers()[1], SIGKILL);
  const Outcome outcome = run.wait();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("s after the failure"));
  EXPECT_EQ(job_.parameter_hash("run", kSteps), hash);
}

// What was copied to others is all that is left of a machine.
TEST_F(OwnFolders, OfWhichOneIsGoneAreRestoredFromTheCopies) {
  const std::string hash = undisturbed_hash();
  for (const std::string& lost : all_) {
    SCOPED_TRACE(lost);
    for (const std::string& machine : all_) fs::remove_all(folder_of(machine));
    ASSERT_EQ(train(all_, {"--stop-after", "10"}).status, 0);
    for (const std::string& machine : all_) EXPECT_EQ(files_of(machine, 10), 4) << machine;
    fs::remove_all(folder_of(lost));
    const Outcome resumed = train(all_, {"--resume"});
    ASSERT_EQ(resumed.status, 0) << resumed.err;
    EXPECT_EQ(job_.parameter_hash("run", 30), hash);
  }
  fs::remove_all(folder_of("box"));
  fs::remove_all(folder_of("lap"));
  const Outcome two = train(all_, {"--resume", "--set", "train.steps=40"});
  EXPECT_EQ(two.status, 7) << two.err;
  EXPECT_THAT(two.err, HasSubstr("is on none of the machines that answer"));
}

TEST_F(OwnFolders, AreGatheredIntoOne) {
  ASSERT_EQ(train(all_, {"--stop-after", "10", "--set", "checkpoint.copies=0"}).status, 0);
  const Outcome in_parts = motley({"ckpt", "verify", job_.run_dir("run")});
  EXPECT_EQ(in_parts.status, 7);
  EXPECT_THAT(in_parts.err, AllOf(HasSubstr("it lies on the machine"), HasSubstr("ckpt gather")));
  const Outcome gathered =
      motley({"ckpt", "gather", job_.run_dir("run"), "--cluster", cluster_of(all_)});
  ASSERT_EQ(gathered.status, 0) << gathered.err;
  EXPECT_THAT(gathered.out, HasSubstr("step 10, 4 files brought"));
  const Outcome whole = motley({"ckpt", "verify", job_.run_dir("run")});
  EXPECT_EQ(whole.status, 0) << whole.err;
}

// Damage at home is mended from the copy; a file whose copy is gone gets another.
TEST_F(OwnFolders, AreRepaired) {
  const std::string hash = undisturbed_hash();
  ASSERT_EQ(train(all_, {"--stop-after", "10"}).status, 0);
  const fs::path part = folder_of("box") / "checkpoints/step-000010";
  const std::string cluster = cluster_of(all_);
  for (const auto& entry : fs::directory_iterator(part)) {
    if (entry.path().extension() == ".safetensors") fs::resize_file(entry.path(), 100);
  }
  const Outcome repaired = motley({"ckpt", "repair", job_.run_dir("run"), "--cluster", cluster});
  ASSERT_EQ(repaired.status, 0) << repaired.err;
  EXPECT_THAT(repaired.out, HasSubstr("step 10, 4 files brought"));
  const Outcome again = motley({"ckpt", "repair", job_.run_dir("run"), "--cluster", cluster});
  EXPECT_THAT(again.out, HasSubstr("step 10, 0 files brought")) << again.err;
  fs::remove_all(folder_of("lap"));
  const Outcome resumed = train(all_, {"--resume"});
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_EQ(job_.parameter_hash("run", 30), hash);
}

// A machine that is gone for good is left out, and what it had comes from its copy.
TEST_F(OwnFolders, OutlastAMachine) {
  constexpr int kSteps = 300;
  const std::string hash = undisturbed_hash(kSteps);
  const std::string gone = (job_.folder() / "gone").string();
  const std::string cluster = job_.folder().write(
      "leaves.toml",
      fmt::format("{}{}{}runs_dir = \"{}\"\nshell = [\"sh\", \"-c\", "
                  "\"test -e {} && exit 255; exec \\\"$0\\\" \\\"$@\\\"\"]\n",
                  kNetwork, entry("desk"), entry("box"), (job_.folder() / "box").string(), gone));
  std::vector<std::string> more =
      words({"desk", "box"}, {"--set", "run.restarts=3", "--set", "train.steps=300"});
  *std::ranges::find(more, cluster_of({"desk", "box"})) = cluster;
  RunningMotley run(job_.train_words("run", more));
  ASSERT_TRUE(eventually([&] { return has_part(20) && run.workers().size() == 2; }));
  job_.folder().write("gone", "");
  ::kill(run.workers().back(), SIGKILL);
  // Its worker may still be at work there for a moment.
  ASSERT_TRUE(eventually([&] {
    std::error_code code;
    fs::remove_all(job_.folder() / "box", code);
    return !fs::exists(job_.folder() / "box");
  }));
  const Outcome outcome = run.wait();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("box does not answer and is left out"));
  EXPECT_EQ(job_.parameter_hash("run", kSteps), hash);
}

}  // namespace
}  // namespace motley::test
