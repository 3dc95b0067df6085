// A run folder over several launches.
#include "record/run_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/system/files.h"

namespace motley {
namespace {

using testing::HasSubstr;

class RunFolderTest : public testing::Test {
 protected:
  RunFolderTest() { std::filesystem::create_directories(dir_); }

  ~RunFolderTest() override { std::filesystem::remove_all(dir_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ / name) << text;
  }

  const std::filesystem::path dir_ =
      std::filesystem::path(testing::TempDir()) / fmt::format("motley-run-folder-{}", ::getpid());
  const RunFolder folder_{dir_};
};

TEST_F(RunFolderTest, KeepsTheNamesOfTheClasses) {
  std::filesystem::create_directories(dir_);
  ASSERT_TRUE(folder_.write_class_names({"cat", "dog \"\xff\""}).ok());
  EXPECT_EQ(*read_file(folder_.classes_path()), "[\n \"cat\",\n \"dog \\\"\xEF\xBF\xBD\\\"\"\n]\n");
}

// As after a first save that failed: there is nothing to resume from.
TEST_F(RunFolderTest, CanBeUsedAgainAfterARunWithoutACheckpoint) {
  ASSERT_TRUE(folder_.create(1).ok());
  write("metrics.jsonl", "{\"step\":1}\n");
  const Result<void> again = folder_.create(2);
  ASSERT_TRUE(again.ok()) << describe(again.error());
  EXPECT_FALSE(std::filesystem::exists(folder_.metrics_path()));
  EXPECT_EQ(*read_file(dir_ / "metrics.before-launch-2.jsonl"), "{\"step\":1}\n");
}

TEST_F(RunFolderTest, BeginsAnewWhereARunFailedBeforeItsFirstCheckpoint) {
  RunReport failed;
  failed.ranks.push_back({.name = "stage 0 (box)", .machine = "box", .device = "cpu"});
  failed.end = {.status = 4, .what = "machine box was lost"};
  std::filesystem::create_directories(dir_);
  ASSERT_TRUE(folder_.write_report(failed).ok());
  EXPECT_TRUE(folder_.create(2).ok());
  failed.end = {};
  ASSERT_TRUE(folder_.write_report(failed).ok());
  EXPECT_FALSE(folder_.create(3).ok()) << "a simulated run that is complete";
}

TEST_F(RunFolderTest, NeverOverwritesARunThatHasSomethingToShow) {
  write("metrics.jsonl", "{\"step\":1}\n");
  write("report.json", "{}");
  const Result<void> again = folder_.create(2);
  ASSERT_FALSE(again.ok());
  EXPECT_THAT(again.error().what, HasSubstr("already holds a run"));
  EXPECT_TRUE(std::filesystem::exists(folder_.metrics_path()));
}

// A manifest that is a link, or on an unmounted disk: existing files must not be replaced.
TEST_F(RunFolderTest, DoesNotTakeWhatItCannotReadForNothing) {
  std::filesystem::create_directories(dir_ / "checkpoints" / "step-000040");
  for (const Result<void>& refused :
       {folder_.create(1), Result<void>(folder_.newest_checkpoint().error())}) {
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(refused.error().what, HasSubstr("step-000040"));
  }
  std::filesystem::remove_all(dir_ / "checkpoints");
  std::filesystem::create_directory_symlink(dir_ / "away", dir_ / "checkpoints");
  EXPECT_EQ(folder_.create(1).error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace motley
