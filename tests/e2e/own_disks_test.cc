// Machines with machine-local run folders, one of which has no space for its part of a checkpoint
// or is not writable: no rank saves, the run continues, and saves again once it can.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/own_folders.h"
#include "e2e/small_disk.h"

namespace motley::test {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::HasSubstr;

constexpr int kEvery = 15;
constexpr int kSteps = 10 * kEvery;

class OwnDisks : public OwnFolders {
 protected:
  static std::vector<std::string> with_settings(std::vector<std::string> words) {
    // Every machine has all files, so that nothing must be written before the resume.
    for (const std::string& setting :
         {fmt::format("train.steps={}", kSteps), fmt::format("checkpoint.every={}", kEvery),
          std::string("checkpoint.keep=0"), std::string("checkpoint.copies=2"),
          std::string("profile.seconds=0.5")}) {
      words.insert(words.end(), {"--set", setting});
    }
    return words;
  }

  // The contents of the files of that checkpoint, by path.
  [[nodiscard]] std::map<std::string, std::string> parts_of_step_5() const {
    std::map<std::string, std::string> files;
    for (const std::string& machine : all_) {
      const fs::path part = folder_of(machine) / "checkpoints/step-000005";
      for (const auto& entry : fs::directory_iterator(part)) {
        files[entry.path().string()] = read_text(entry.path());
      }
    }
    return files;
  }

  // Waits until at least two more saves were due.
  [[nodiscard]] bool passes_two_saves() const {
    const std::size_t begin = metric_column(job_.run_dir("run"), "step").size();
    return eventually(
        [&] { return metric_column(job_.run_dir("run"), "step").size() > begin + 2 * kEvery + 2; });
  }
};

// Enough for a launch's lock records, but not for a shard.
constexpr std::uint64_t kMarks_bytes = 60'000;

// Fills the disk of a folder so that this space is left.
void fill(const fs::path& filler, std::uint64_t left_bytes) {
  const std::uint64_t free_bytes = fs::space(filler.parent_path()).available;
  std::ofstream(filler) << std::string(free_bytes - left_bytes, 'x');
}

TEST_F(OwnDisks, OfWhichOneCannotSaveAreNamedAndAllSaveOnceItCan) {
  const SmallDisk disk(job_.folder() / "lap", "64m");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a small disk needs root";
  const std::string hash = undisturbed_hash(kSteps);
  const Outcome begun = train(all_, with_settings({"--stop-after", "5"}));
  ASSERT_EQ(begun.status, 0) << begun.err;
  const auto saved = parts_of_step_5();
  ASSERT_EQ(saved.size(), 3U * 9U) << "six files and three texts on each";

  const fs::path filler = job_.folder() / "lap/filler";
  fill(filler, kMarks_bytes);
  RunningMotley run(job_.train_words("run", words(all_, with_settings({"--resume"}))));
  ASSERT_TRUE(passes_two_saves()) << run.wait().err;
  EXPECT_FALSE(has_part(kEvery));
  fs::remove(filler);
  ReadOnlyFolder guarded(folder_of("desk") / "checkpoints");
  EXPECT_TRUE(guarded.guarded());
  ASSERT_TRUE(passes_two_saves()) << run.wait().err;
  EXPECT_EQ(parts_of_step_5(), saved);
  guarded.end();
  const Outcome outcome = run.wait();
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr(fmt::format("step {} was not saved: the disk of lap has too little "
                                          "space for a checkpoint: the parts of its 1 rank need",
                                          kEvery)),
                    HasSubstr("bytes are missing. The checkpoint of step 5 remains, and the run "
                              "continues; before the next save, free space on that disk"),
                    HasSubstr("(desk): cannot create folder"),
                    HasSubstr("before the next save, check the permissions")));
  for (const std::string& machine : all_) {
    EXPECT_EQ(files_of(machine, kEvery), 0) << machine;
    EXPECT_EQ(files_of(machine, kSteps), 6) << machine;
  }
  EXPECT_EQ(job_.parameter_hash("run", kSteps), hash);
}

// There is no space even for a launch's lock record, and everything that must be read is already
// there.
TEST_F(OwnDisks, OfWhichOneIsFullToTheLastByteAreGoneOnFrom) {
  const SmallDisk disk(job_.folder() / "lap", "64m");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a small disk needs root";
  const std::string hash = undisturbed_hash(kSteps);
  const Outcome begun = train(all_, with_settings({"--stop-after", "5"}));
  ASSERT_EQ(begun.status, 0) << begun.err;
  const auto saved = parts_of_step_5();
  const fs::path filler = job_.folder() / "lap/filler";
  fill(filler, 0);
  ASSERT_EQ(fs::space(filler.parent_path()).available, 0U);
  RunningMotley run(job_.train_words("run", words(all_, with_settings({"--resume"}))));
  ASSERT_TRUE(passes_two_saves()) << run.wait().err;
  EXPECT_EQ(parts_of_step_5(), saved);
  fs::remove(filler);
  const Outcome outcome = run.wait();
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("the disk of lap has too little space for a save: about"),
                    HasSubstr("lap reads its part of the checkpoint from the files in place"),
                    HasSubstr(fmt::format("step {} was not saved", kEvery))));
  EXPECT_EQ(files_of("lap", kSteps), 6);
  EXPECT_EQ(job_.parameter_hash("run", kSteps), hash);
}

}  // namespace
}  // namespace motley::test
