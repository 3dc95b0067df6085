// A run whose machines have machine-local run folders: files reach other machines only through the
// ranks' connections, and the run is bit-identical to one in a single folder.
#include "e2e/own_folders.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley::test {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::HasSubstr;

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
  // The last machine no longer computes, but still has files that the others need.
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

// Two launchers whose runs have the same name and use folders on the same machines.
TEST_F(OwnFolders, OfAnotherRunOfTheSameNameAreLeftAlone) {
  ASSERT_EQ(train(all_, {"--stop-after", "10"}).status, 0);
  ASSERT_EQ(job_.train("other/run", words({"desk"}, {"--stop-after", "5"})).status, 0);
  const Outcome met = job_.train("other/run", words(all_, {"--resume"}));
  EXPECT_EQ(met.status, 3) << met.err;
  EXPECT_THAT(met.err, AllOf(HasSubstr((job_.folder() / "box/run").string() + " on box"),
                             HasSubstr("has another run of the same name"),
                             HasSubstr("its part of step 10 is of run "), HasSubstr("with --run")));
  EXPECT_FALSE(fs::exists(job_.folder() / "other/run/checkpoints/step-000010"));
  const Outcome gathered = motley(
      {"ckpt", "gather", (job_.folder() / "other/run").string(), "--cluster", cluster_of(all_)});
  EXPECT_EQ(gathered.status, 3) << gathered.err;
  // Neither run is damaged.
  for (const std::string& machine : all_) EXPECT_EQ(files_of(machine, 10), 4) << machine;
  const Outcome first = train(all_, {"--resume", "--stop-after", "12"});
  EXPECT_EQ(first.status, 0) << first.err;
  const Outcome second =
      job_.train("other/run", words({"desk"}, {"--resume", "--stop-after", "7"}));
  EXPECT_EQ(second.status, 0) << second.err;
}

TEST_F(OwnFolders, AreNotMadeForAMistypedName) {
  std::vector<std::string> resume = words(all_, {"--resume"});
  const Outcome refused = job_.train("mistyped", resume);
  EXPECT_EQ(refused.status, 3) << refused.err;
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("there is no run " + job_.run_dir("mistyped") + " on any machine"),
                    HasSubstr("the folders of box, desk, lap"), HasSubstr("check --run")));
  EXPECT_FALSE(fs::exists(job_.run_dir("mistyped")));
  for (const char* machine : {"box", "lap"}) EXPECT_FALSE(fs::exists(job_.folder() / machine));
}

TEST_F(OwnFolders, OfWhichOneIsGoneAreNamed) {
  ASSERT_EQ(train(all_, {"--stop-after", "10", "--set", "checkpoint.copies=0"}).status, 0);
  fs::remove_all(folder_of("lap"));
  const Outcome resumed = train(all_, {"--resume", "--set", "checkpoint.copies=0"});
  EXPECT_EQ(resumed.status, 7) << resumed.err;
  EXPECT_THAT(resumed.err,
              AllOf(HasSubstr("of step 10"), HasSubstr("is on no machine that answers")));
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

// Only the copies on other machines remain of a lost machine.
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
  EXPECT_THAT(two.err, HasSubstr("is on no machine that answers"));
}

TEST_F(OwnFolders, AreGatheredIntoOne) {
  ASSERT_EQ(train(all_, {"--stop-after", "10", "--set", "checkpoint.copies=0"}).status, 0);
  const Outcome in_parts = motley({"ckpt", "verify", job_.run_dir("run")});
  EXPECT_EQ(in_parts.status, 7);
  EXPECT_THAT(in_parts.err,
              AllOf(HasSubstr("it is stored on the machine"), HasSubstr("ckpt gather")));
  const Outcome gathered =
      motley({"ckpt", "gather", job_.run_dir("run"), "--cluster", cluster_of(all_)});
  ASSERT_EQ(gathered.status, 0) << gathered.err;
  EXPECT_THAT(gathered.out, HasSubstr("step 10, 4 files copied"));
  const Outcome whole = motley({"ckpt", "verify", job_.run_dir("run")});
  EXPECT_EQ(whole.status, 0) << whole.err;
  const std::string older = job_.run_dir("run") + "/checkpoints/step-000005";
  const Outcome earlier = motley({"ckpt", "gather", older, "--cluster", cluster_of(all_)});
  EXPECT_THAT(earlier.out, HasSubstr("step 5, 4 files copied")) << earlier.err;
  EXPECT_EQ(motley({"ckpt", "verify", older}).status, 0);
  // A folder that is not a run's is not turned into one.
  const std::string other = job_.run_dir("run") + "/checkpoints";
  const Outcome none = motley({"ckpt", "gather", other, "--cluster", cluster_of(all_)});
  EXPECT_EQ(none.status, 3);
  EXPECT_THAT(none.err, HasSubstr("not a run folder"));
  EXPECT_FALSE(fs::exists(other + "/launches"));
}

TEST_F(OwnFolders, AreGatheredWhereTheLaunchersWasLost) {
  ASSERT_EQ(train(all_, {"--stop-after", "10"}).status, 0);
  fs::remove_all(job_.run_dir("run"));
  fs::create_directory(job_.run_dir("run"));
  const Outcome gathered =
      motley({"ckpt", "gather", job_.run_dir("run"), "--cluster", cluster_of(all_)});
  EXPECT_EQ(gathered.status, 0) << gathered.err;
  EXPECT_EQ(motley({"ckpt", "verify", job_.run_dir("run")}).status, 0);
}

// The launcher gets the checkpoint's metadata from other folders if its own is damaged.
TEST_F(OwnFolders, TellWhatBelongsToACheckpoint) {
  const std::string hash = undisturbed_hash();
  ASSERT_EQ(train(all_, {"--stop-after", "10"}).status, 0);
  for (const auto& step : fs::directory_iterator(folder_of("desk") / "checkpoints")) {
    fs::resize_file(step.path() / "manifest.json", 100);
  }
  const Outcome resumed = train(all_, {"--resume"});
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("has a damaged manifest of step 10"));
  EXPECT_EQ(job_.parameter_hash("run", 30), hash);
}

// The newest checkpoint, which the launcher does not know and whose metadata is damaged
// everywhere, is not skipped silently.
TEST_F(OwnFolders, OfWhichNoneCanTellTheNewestCheckpointAreNamed) {
  const std::string hash = undisturbed_hash();
  ASSERT_EQ(train(all_, {"--stop-after", "10"}).status, 0);
  fs::remove_all(folder_of("desk") / "checkpoints/step-000010");
  for (const char* machine : {"box", "lap"}) {
    fs::resize_file(folder_of(machine) / "checkpoints/step-000010/manifest.json", 100);
  }
  const Outcome earlier = train(all_, {"--resume", "--stop-after", "7"});
  ASSERT_EQ(earlier.status, 0) << earlier.err;
  EXPECT_THAT(earlier.err, AllOf(HasSubstr("the checkpoint of step 10 cannot be used: its manifest "
                                           "is damaged"),
                                 HasSubstr(folder_of("box").string() + " on box ("),
                                 HasSubstr(folder_of("lap").string() + " on lap (")));
  EXPECT_THAT(earlier.err,
              HasSubstr("of step 10 are not removed until the run has saved that step"));
  for (const char* machine : {"box", "lap"}) EXPECT_EQ(files_of(machine, 10), 4) << machine;
  const Outcome resumed = train(all_, {"--resume"});
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_EQ(job_.parameter_hash("run", 30), hash);
}

TEST_F(OwnFolders, OfWhichNoneCanTellAnyCheckpointAreNamed) {
  ASSERT_EQ(train(all_, {"--stop-after", "5"}).status, 0);
  fs::remove_all(folder_of("desk"));
  for (const char* machine : {"box", "lap"}) {
    fs::resize_file(folder_of(machine) / "checkpoints/step-000005/manifest.json", 100);
  }
  const Outcome refused = train(all_, {"--resume"});
  EXPECT_EQ(refused.status, 7) << refused.err;
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("no checkpoint of"), HasSubstr(" on box ("), HasSubstr(" on lap (")));
}

TEST_F(OwnFolders, AreNotOneBecauseOneWasCopied) {
  const std::string hash = undisturbed_hash();
  ASSERT_EQ(train(all_, {"--stop-after", "10"}).status, 0);
  fs::remove_all(folder_of("lap"));
  fs::copy(folder_of("box"), folder_of("lap"), fs::copy_options::recursive);
  const Outcome refused = train(all_, {"--resume"});
  EXPECT_EQ(refused.status, 3);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("have the same id"), HasSubstr(folder_of("lap").string())));
  fs::remove(folder_of("lap") / "store.json");
  const Outcome resumed = train(all_, {"--resume"});
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_EQ(job_.parameter_hash("run", 30), hash);
}

// Checkpoints and copies that are no longer retained are removed.
TEST_F(OwnFolders, HoldNoMoreThanAreKeptOnceTheRunHasEnded) {
  const Outcome done = train(all_, {"--set", "checkpoint.keep=2"});
  ASSERT_EQ(done.status, 0) << done.err;
  for (const std::string& machine : all_) {
    EXPECT_EQ(files_of(machine, 20), 0) << machine;
    EXPECT_GE(files_of(machine, 25), 2) << machine;
    EXPECT_EQ(files_of(machine, 30), 4) << machine;
  }
}

// Damaged files are restored from their copies; a file that lost its copy is copied again.
TEST_F(OwnFolders, AreRepaired) {
  const std::string hash = undisturbed_hash();
  ASSERT_EQ(train(all_, {"--stop-after", "10"}).status, 0);
  const fs::path part = folder_of("box") / "checkpoints/step-000010";
  const std::string cluster = cluster_of(all_);
  for (const auto& entry : fs::directory_iterator(part)) {
    if (entry.path().extension() == ".safetensors") fs::resize_file(entry.path(), 100);
  }
  // The checkpoint's metadata is copied as well, from any machine that has it.
  const fs::path lap = folder_of("lap") / "checkpoints/step-000010";
  for (const fs::path& text : {lap / "manifest.json", part / "config.json"}) {
    fs::resize_file(text, 10);
  }
  const std::vector<std::string> verify = {"ckpt", "verify", job_.run_dir("run"), "--cluster",
                                           cluster};
  const Outcome damaged = motley(verify);
  EXPECT_EQ(damaged.status, 7) << damaged.err;
  EXPECT_THAT(damaged.out, HasSubstr("  box\n")) << "where it is damaged, at the end of a line";
  EXPECT_THAT(damaged.err, AllOf(HasSubstr("with intact copies"), HasSubstr("ckpt repair")));
  const Outcome repaired = motley({"ckpt", "repair", job_.run_dir("run"), "--cluster", cluster});
  ASSERT_EQ(repaired.status, 0) << repaired.err;
  EXPECT_THAT(repaired.out, HasSubstr("step 10, 4 files copied"));
  EXPECT_GT(fs::file_size(lap / "manifest.json"), 10);
  EXPECT_GT(fs::file_size(part / "config.json"), 10);
  const Outcome again = motley({"ckpt", "repair", job_.run_dir("run"), "--cluster", cluster});
  EXPECT_THAT(again.out, HasSubstr("step 10, 0 files copied")) << again.err;
  const Outcome whole = motley(verify);
  EXPECT_EQ(whole.status, 0) << whole.err;
  EXPECT_THAT(whole.out, HasSubstr("step 10: all 6 files are intact\n"));
  fs::remove_all(folder_of("lap"));
  const Outcome resumed = train(all_, {"--resume"});
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_EQ(job_.parameter_hash("run", 30), hash);
}

// A permanently lost machine is left out, and its files come from their copies.
TEST_F(OwnFolders, OutlastAMachine) {
  constexpr int kSteps = 300;
  const std::string hash = undisturbed_hash(kSteps);
  const std::vector<std::string> more =
      words_with_leaving_box({"--set", "run.restarts=3", "--set", "train.steps=300"});
  RunningMotley run(job_.train_words("run", more));
  ASSERT_TRUE(eventually([&] { return has_part(20) && run.workers().size() == 2; }));
  job_.folder().write("gone", "");
  ::kill(run.workers().back(), SIGKILL);
  // Its worker may still be writing for a moment.
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
