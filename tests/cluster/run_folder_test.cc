// A run folder over several launches: the epochs, and what an early end leaves.
#include "cluster/run/run_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/system/files.h"
#include "cluster/run/epoch.h"

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

TEST_F(RunFolderTest, GivesEachLaunchAHigherEpoch) {
  EXPECT_EQ(*current_epoch(dir_), 0U);
  EXPECT_EQ(*begin_epoch(dir_), 1U);
  EXPECT_EQ(*begin_epoch(dir_), 2U);
  EXPECT_EQ(*current_epoch(dir_), 2U);
}

TEST_F(RunFolderTest, GuessesNoEpoch) {
  for (const char* text : {"", "x", "-1", "3x", "3\n\n", "4294967296"}) {
    write("epoch", text);
    EXPECT_FALSE(begin_epoch(dir_).ok()) << text;
  }
  write("epoch", "4294967295");
  EXPECT_FALSE(begin_epoch(dir_).ok()) << "a frame has no room for a higher one";
}

// As after a first save that failed: there is nothing to resume from.
TEST_F(RunFolderTest, CanBeUsedAgainAfterARunWithoutACheckpoint) {
  ASSERT_TRUE(folder_.create().ok());
  ASSERT_TRUE(begin_epoch(dir_).ok());
  write("metrics.jsonl", "{\"step\":1}\n");
  const Result<void> again = folder_.create();
  ASSERT_TRUE(again.ok()) << describe(again.error());
  EXPECT_FALSE(std::filesystem::exists(folder_.metrics_path()));
  EXPECT_EQ(*read_file(dir_ / "metrics.epoch-1.jsonl"), "{\"step\":1}\n");
}

TEST_F(RunFolderTest, NeverOverwritesARunThatHasSomethingToShow) {
  write("metrics.jsonl", "{\"step\":1}\n");
  write("report.json", "{}");
  const Result<void> again = folder_.create();
  ASSERT_FALSE(again.ok());
  EXPECT_THAT(again.error().what, HasSubstr("already holds a run"));
  EXPECT_TRUE(std::filesystem::exists(folder_.metrics_path()));
}

}  // namespace
}  // namespace motley
