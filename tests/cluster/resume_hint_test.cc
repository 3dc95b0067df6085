#include "cluster/run/resume_hint.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

class ResumeHintTest : public testing::Test {
 protected:
  ResumeHintTest() { std::filesystem::create_directories(dir_); }

  ~ResumeHintTest() override { std::filesystem::remove_all(dir_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ / name) << text;
  }

  const std::filesystem::path dir_ =
      std::filesystem::path(testing::TempDir()) / fmt::format("motley-resume-hint-{}", ::getpid());
};

TEST_F(ResumeHintTest, TellsHowARunThatEndedEarlyGoesOn) {
  const Error lost{ErrorCode::kPeer, "rank 1 was lost", "", "check the network"};
  EXPECT_EQ(with_resume_hint(lost, dir_, 1, {}).remedy,
            "check the network; no checkpoint was saved yet: restart without --resume");
  const Commands commands{"motley train a", "motley train a --resume --allow-changes",
                          "motley train a --resume", ""};
  EXPECT_THAT(describe(with_resume_hint(lost, dir_, 1, commands)),
              EndsWith("\n"
                       "  try:   check the network\n"
                       "         no checkpoint was saved yet: restart without --resume\n"
                       "         motley train a\n"));
  std::filesystem::create_directories(dir_ / "checkpoints" / "step-000040");
  write("checkpoints/step-000040/manifest.json", "{}");
  EXPECT_EQ(with_resume_hint(lost, dir_, 1, {}).remedy,
            "check the network; --resume continues from the checkpoint of step 40");
  const Error stop{ErrorCode::kInterrupted, "interrupted", "", ""};
  EXPECT_EQ(with_resume_hint(stop, dir_, 31, commands).remedy,
            "--resume continues from the checkpoint of step 40\n"
            "motley train a --resume");
  // The allowed changes are not in a checkpoint yet.
  EXPECT_EQ(with_resume_hint(stop, dir_, 41, commands).remedy,
            "--resume continues from the checkpoint of step 40\n"
            "motley train a --resume --allow-changes");
  EXPECT_THAT(
      with_resume_hint({ErrorCode::kDiverged, "the training diverged", "", ""}, dir_, 1, {}).remedy,
      HasSubstr("if it diverges again, restart with another --run"));
}

}  // namespace
}  // namespace motley
