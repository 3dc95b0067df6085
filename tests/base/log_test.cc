// Logs to files that cannot be written as usual.
#include "base/log.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;

class LogTest : public testing::Test {
 protected:
  LogTest() {
    std::string name = (fs::temp_directory_path() / "motley-log-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }

  ~LogTest() override { fs::remove_all(folder_); }

  fs::path folder_;
  std::string said_;
  Log log_{"", LogLevel::kInfo, [this](std::string_view text) { said_ += text; }};
};

TEST_F(LogTest, KeepsWhatEndedTheRun) {
  ASSERT_TRUE(log_.write_to(folder_ / "log").ok());
  log_.keep({ErrorCode::kCorrupt, "no room", "the disk is full", "free space"});
  std::ifstream file(folder_ / "log");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(text, HasSubstr("no room"));
  EXPECT_THAT(text, HasSubstr("free space"));
}

// A file size limit emulates a full disk.
TEST_F(LogTest, ADiskThatIsFullIsNoFailureOfItsOwn) {
  ASSERT_TRUE(log_.write_to(folder_ / "log").ok());
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit nothing{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &nothing), 0);
  EXPECT_NO_THROW(log_.info("a line"));
  EXPECT_NO_THROW(log_.keep({ErrorCode::kCorrupt, "no room", "the disk is full", "free space"}));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(said_, "info: a line\n");
}

TEST_F(LogTest, IsNotLedToAnotherFile) {
  std::ofstream(folder_ / "notes") << "mine";
  fs::create_symlink(folder_ / "notes", folder_ / "log");
  EXPECT_FALSE(log_.write_to(folder_ / "log").ok());
  EXPECT_EQ(fs::file_size(folder_ / "notes"), 4U);
}

TEST_F(LogTest, DoesNotWaitAtAPipe) {
  ASSERT_EQ(::mkfifo((folder_ / "log").c_str(), 0600), 0);
  EXPECT_FALSE(log_.write_to(folder_ / "log").ok());
}

}  // namespace
}  // namespace motley
