// A run on another machine, with a program in place of ssh that runs the remote command here.
#include "watch/browser/elsewhere.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/system/owned_fd.h"

namespace motley {
namespace {

TEST(RunElsewhere, IsAHostBeforeAColon) {
  const auto box = run_elsewhere("anna@box:runs/my gpt");
  ASSERT_TRUE(box.has_value());
  EXPECT_EQ(box->host, "anna@box");
  EXPECT_EQ(box->folder, "runs/my gpt");
  EXPECT_EQ(run_elsewhere("box:~/runs/gpt")->folder, "runs/gpt");
  EXPECT_EQ(run_elsewhere("box:/srv/runs/gpt")->folder, "/srv/runs/gpt");
  EXPECT_EQ(run_elsewhere("box:--tui")->folder, "./--tui");
}

TEST(RunElsewhere, IsNoPathOnThisMachine) {
  for (const char* path :
       {"runs/gpt", "/runs/a:b", "./a:b", ":runs", "box:", "-oProxyCommand=x:y", "a b:runs", ""}) {
    EXPECT_FALSE(run_elsewhere(path).has_value()) << path;
  }
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "a:b";
  std::filesystem::create_directories(folder);
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.parent_path());
  EXPECT_FALSE(run_elsewhere("a:b").has_value());
  std::filesystem::current_path(before);
}

TEST(RunElsewhere, IsAskedForByWordsThatNoShellChanges) {
  const auto words = command_elsewhere({"box", "it's $HOME"}, {.port = 4711}, "/opt/m m/motley");
  EXPECT_THAT(words, testing::Contains("127.0.0.1:4711:127.0.0.1:4711"));
  ASSERT_GE(words.size(), 3U);
  EXPECT_EQ(words[words.size() - 3], "--");
  EXPECT_EQ(words[words.size() - 2], "box");
  EXPECT_THAT(words.back(), testing::StartsWith("exec sh -c "));
}

class ElsewhereTest : public testing::Test {
 protected:
  ElsewhereTest() {
    const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
    dir_ = std::filesystem::path(testing::TempDir()) /
           (std::string("motley-elsewhere-") + info->name());
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directories(dir_);
    // The last argument is the remote command.
    write("ssh", "#!/bin/sh\nfor word; do :; done\nexec sh -c \"$word\"\n");
  }

  ~ElsewhereTest() override { std::filesystem::remove_all(dir_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ / name) << text;
    std::filesystem::permissions(dir_ / name, std::filesystem::perms::owner_all);
  }

  // Watches in a child process, which exits with the error's code; returns its first output.
  std::string watch(const BrowserWatchOptions& options = {}) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      const std::string path = dir_.string() + ":" + std::getenv("PATH");
      ::setenv("PATH", path.c_str(), 1);
      const auto watched = watch_elsewhere({"box", "runs/gpt"}, options, dir_ / "motley");
      ::_exit(watched.ok() ? 0 : static_cast<int>(watched.error().code));
    }
    ::close(ends[1]);
    const OwnedFd out(ends[0]);
    std::string line;
    char piece = 0;
    while (::read(out.get(), &piece, 1) == 1 && piece != '\n') line += piece;
    return line;
  }

  int end_status() const {
    int status = 0;
    ::waitpid(child_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::filesystem::path dir_;
  pid_t child_ = -1;
};

TEST_F(ElsewhereTest, TellsTheAddressUntilThePersonHasSeenEnough) {
  // Prints its arguments, and waits for the end of its input, as --until-eof does.
  write("motley", "#!/bin/sh\necho \"http://127.0.0.1:$4/?token=abc $*\"\nexec cat\n");
  EXPECT_EQ(watch({.port = 4711, .for_metrics = true}),
            "http://127.0.0.1:4711/?token=abc watch runs/gpt --port 4711 --until-eof --metrics");
  ::kill(child_, SIGINT);
  EXPECT_EQ(end_status(), 0);
}

TEST_F(ElsewhereTest, AnErrorThereIsOneHere) {
  write("motley", "#!/bin/sh\nexit 3\n");
  watch();
  EXPECT_EQ(end_status(), static_cast<int>(ErrorCode::kConfig));
}

TEST_F(ElsewhereTest, AMachineThatIsNotReachedIsAPeerThatIsNot) {
  write("ssh", "#!/bin/sh\nexit 255\n");
  watch();
  EXPECT_EQ(end_status(), static_cast<int>(ErrorCode::kPeer));
}

TEST_F(ElsewhereTest, ATokenFileIsNotOfThisMachine) {
  const auto watched = watch_elsewhere({"box", "runs/gpt"}, {.token_file = "token"}, "motley");
  ASSERT_FALSE(watched.ok());
  EXPECT_EQ(watched.error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace motley
