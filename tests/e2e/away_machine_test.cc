// A run that is resumed while a machine is off.
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/own_folders.h"

namespace motley::test {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::HasSubstr;

class AwayMachine : public OwnFolders {
 protected:
  [[nodiscard]] Outcome train_two(const std::vector<std::string>& more) const {
    return job_.train("run", words_with_leaving_box(more));
  }

  // Resumes with automatic restarts.
  [[nodiscard]] Outcome resume() const {
    return train_two({"--resume", "--set", "run.restarts=3"});
  }

  // Including its disk.
  void switch_box_off() const {
    job_.folder().write("gone", "");
    fs::rename(job_.folder() / "box", job_.folder() / "box-away");
  }
};

TEST_F(AwayMachine, IsLeftOutWhereOthersHaveWhatItHad) {
  const std::string hash = undisturbed_hash();
  ASSERT_EQ(train_two({"--stop-after", "10"}).status, 0);
  switch_box_off();
  const Outcome resumed = resume();
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("box does not answer and is left out (box: "));
  EXPECT_EQ(job_.parameter_hash("run", 30), hash);
}

TEST_F(AwayMachine, IsWaitedForWhereItAloneHasTheNewestCheckpoint) {
  ASSERT_EQ(train_two({"--stop-after", "5"}).status, 0);
  ASSERT_EQ(train_two({"--resume", "--stop-after", "10", "--set", "checkpoint.copies=0"}).status,
            0);
  switch_box_off();
  const Outcome resumed = resume();
  EXPECT_EQ(resumed.status, 4) << resumed.err;
  EXPECT_THAT(resumed.err,
              AllOf(HasSubstr("step 10 needs a machine that does not answer: box"),
                    HasSubstr("without it in the cluster file the run continues from step 5")));
}

TEST_F(AwayMachine, IsAnErrorWhereARunWouldNotLeaveItOut) {
  ASSERT_EQ(train_two({"--stop-after", "5"}).status, 0);
  switch_box_off();
  const Outcome resumed = train_two({"--resume", "--set", "run.restarts=0"});
  EXPECT_EQ(resumed.status, 4) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("a machine cannot be used: box"));
}

TEST_F(AwayMachine, HasNoFolderAfterAResumeThatWasRefused) {
  ASSERT_EQ(job_.train("run", words({"desk"}, {"--stop-after", "5"})).status, 0);
  const Outcome refused = train_two({"--resume", "--set", "train.seed=77"});
  EXPECT_EQ(refused.status, 3) << refused.err;
  EXPECT_FALSE(fs::exists(job_.folder() / "box"));
  const Outcome resumed = train_two({"--resume", "--stop-after", "10"});
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_EQ(files_of("box", 10), 4) << "its own and its copies of the other's";
}

}  // namespace
}  // namespace motley::test
