// The file by which the machines of a launcher find their head.
#include "cli/launch/run_invitation.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley {
namespace {

namespace fs = std::filesystem;

class RunInvitationTest : public testing::Test {
 protected:
  RunInvitationTest() { fs::create_directories(run_); }

  ~RunInvitationTest() override { fs::remove_all(run_); }

  RunInvitation write(const std::string& mark, const std::string& ticket) {
    auto written = RunInvitation::write(run_, {mark, ticket});
    EXPECT_TRUE(written.ok()) << describe(written.error());
    return std::move(written).value();
  }

  const fs::path run_ =
      fs::temp_directory_path() / ("motley-invitation-" + std::to_string(::getpid()));
  const fs::path file_ = run_ / "invitation";
};

TEST_F(RunInvitationTest, IsReadAsWrittenByItsUserAlone) {
  const RunInvitation invitation = write("abc", "motley1:…");
  const auto text = read_invitation(run_);
  ASSERT_TRUE(text.ok() && text->has_value());
  EXPECT_EQ((*text)->mark, "abc");
  EXPECT_EQ((*text)->ticket, "motley1:…");

  struct stat facts {};

  ASSERT_EQ(::stat(file_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
}

TEST_F(RunInvitationTest, IsRemovedAtTheEndUnlessALaterStartHasReplacedIt) {
  auto first = std::optional<RunInvitation>(write("first", "one"));
  {
    const RunInvitation second = write("second", "");
    first.reset();
    const auto text = read_invitation(run_);
    ASSERT_TRUE(text.ok() && text->has_value());
    EXPECT_EQ((*text)->mark, "second");
    EXPECT_EQ((*text)->ticket, "");
  }
  EXPECT_FALSE(fs::exists(file_));
  EXPECT_TRUE(fs::is_empty(run_));
}

TEST_F(RunInvitationTest, IsNotReadIfOthersCouldHaveWrittenIt) {
  EXPECT_FALSE(read_invitation(run_)->has_value());
  std::ofstream(file_) << "mark\nticket\n";
  ::chmod(file_.c_str(), 0620);
  EXPECT_EQ(read_invitation(run_).error().code, ErrorCode::kUnauthorised);
  fs::rename(file_, run_ / "other");
  fs::create_symlink(run_ / "other", file_);
  EXPECT_FALSE(read_invitation(run_).ok());
}

TEST_F(RunInvitationTest, ReplacesALinkInsteadOfFollowingIt) {
  std::ofstream(run_ / "other") << "kept";
  fs::create_symlink(run_ / "other", file_);
  const RunInvitation invitation = write("abc", "secret");
  std::string text;
  std::ifstream(run_ / "other") >> text;
  EXPECT_EQ(text, "kept");
}

}  // namespace
}  // namespace motley
