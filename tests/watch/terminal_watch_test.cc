// A run on a real terminal: the drawing, and the restored terminal afterwards.
#include "watch/terminal/terminal_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/system/owned_fd.h"
#include "record/step_metrics.h"

namespace motley {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kStallTimeout_s = 20;

class TerminalWatchTest : public testing::Test {
 protected:
  TerminalWatchTest() {
    const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
    run_ = std::filesystem::path(testing::TempDir()) / (std::string("motley-tui-") + info->name());
    std::filesystem::remove_all(run_);
    std::filesystem::create_directories(run_);
    std::ofstream(run_ / "config.toml") << "[train]\nsteps = 30\n[data]\nkind = \"synthetic\"\n";
    add_step(7);
    master_ = OwnedFd(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    EXPECT_TRUE(master_.open() && ::grantpt(master_.get()) == 0 && ::unlockpt(master_.get()) == 0);
    const winsize size{.ws_row = 20, .ws_col = 60, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(::ioctl(master_.get(), TIOCSWINSZ, &size), 0);
  }

  ~TerminalWatchTest() override {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    std::filesystem::remove_all(run_);
  }

  void add_step(std::int64_t number) const {
    StepMetrics metrics;
    metrics.step = number;
    metrics.outcome.loss = 2.5;
    metrics.step_s = 0.25;
    std::ofstream(run_ / "metrics.jsonl", std::ios::app) << metrics_to_json(metrics).dump() << "\n";
  }

  // Watches in a child process on this test's terminal.
  void start(const TerminalWatchOptions& options) {
    const std::string name = ::ptsname(master_.get());
    child_ = ::fork();
    ASSERT_GE(child_, 0);
    if (child_ > 0) return;
    ::setsid();
    const int terminal = ::open(name.c_str(), O_RDWR);  // becomes the session's controlling
                                                        // terminal
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(terminal, fd);
    const auto watched = watch_in_terminal(run_, options);
    ::_exit(watched.ok() ? 0 : static_cast<int>(watched.error().code));
  }

  // The same as a job of a shell: when it stops, the shell prints the state of the terminal, and
  // continues it.
  void start_as_job(const TerminalWatchOptions& options) {
    const std::string name = ::ptsname(master_.get());
    child_ = ::fork();
    ASSERT_GE(child_, 0);
    if (child_ > 0) return;
    ::setsid();
    const int terminal = ::open(name.c_str(), O_RDWR);
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(terminal, fd);
    ::signal(SIGTTOU, SIG_IGN);
    const pid_t job = ::fork();
    if (job == 0) {
      ::setpgid(0, 0);
      ::tcsetpgrp(STDIN_FILENO, ::getpid());
      ::signal(SIGTTOU, SIG_DFL);
      const auto watched = watch_in_terminal(run_, options);
      ::_exit(watched.ok() ? 0 : static_cast<int>(watched.error().code));
    }
    int status = 0;
    while (::waitpid(job, &status, WUNTRACED) == job && WIFSTOPPED(status)) {
      ::tcsetpgrp(STDIN_FILENO, ::getpid());
      termios found{};
      ::tcgetattr(STDIN_FILENO, &found);
      const std::string_view words =
          (found.c_lflag & ICANON) != 0 ? "stopped in order\n" : "stopped raw\n";
      if (::write(STDOUT_FILENO, words.data(), words.size()) < 0) ::_exit(1);
      ::tcsetpgrp(STDIN_FILENO, job);
      ::kill(-job, SIGCONT);
    }
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }

  // Everything drawn until it contains the words.
  std::string drawn_until(const std::string& words) {
    const Deadline deadline = Deadline::after_s(kStallTimeout_s);
    while (drawn_.find(words) == std::string::npos && !deadline.passed()) read_some();
    EXPECT_THAT(drawn_, HasSubstr(words));
    return drawn_;
  }

  void press(char key) { ASSERT_EQ(::write(master_.get(), &key, 1), 1); }

  int exit_status() {
    int status = -1;
    const Deadline deadline = Deadline::after_s(kStallTimeout_s);
    while (::waitpid(child_, &status, WNOHANG) == 0 && !deadline.passed()) read_some();
    child_ = -1;
    read_some();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::filesystem::path run_;
  OwnedFd master_;
  pid_t child_ = -1;
  std::string drawn_;

 private:
  void read_some() {
    constexpr int kWait_ms = 20;
    pollfd fd{master_.get(), POLLIN, 0};
    if (::poll(&fd, 1, kWait_ms) <= 0 || (fd.revents & POLLIN) == 0) return;
    char piece[4096];
    const ssize_t got = ::read(master_.get(), piece, sizeof(piece));
    if (got > 0) drawn_.append(piece, static_cast<std::size_t>(got));
  }
};

TEST_F(TerminalWatchTest, DrawsAFinishedRunAtOnceAndLeavesWithQ) {
  start({.term = "xterm"});
  const std::string drawn = drawn_until("step 7/30");
  EXPECT_THAT(drawn, HasSubstr("\x1b[?1049h"));
  EXPECT_THAT(drawn, HasSubstr("\x1b[1m"));
  press('q');
  EXPECT_EQ(exit_status(), 0);
  EXPECT_THAT(drawn_, HasSubstr("\x1b[?25h\x1b[?1049l"));
  termios after{};
  ASSERT_EQ(::tcgetattr(master_.get(), &after), 0);
  EXPECT_NE(after.c_lflag & ICANON, 0U);
  EXPECT_NE(after.c_lflag & ECHO, 0U);
}

TEST_F(TerminalWatchTest, FollowsTheRunAndLeavesWithControlC) {
  start({.term = "xterm"});
  drawn_until("step 7/30");
  add_step(8);
  drawn_until("step 8/30");
  press('\x03');
  EXPECT_EQ(exit_status(), 0);
  EXPECT_THAT(drawn_, HasSubstr("\x1b[?1049l"));
}

// A hole of zeros represents a long run's lines, which take long to read.
TEST_F(TerminalWatchTest, SaysThatItIsStillReadingAndLeavesAllTheSame) {
  std::filesystem::resize_file(run_ / "metrics.jsonl", std::uintmax_t{1} << 40);
  start({.term = "xterm"});
  drawn_until("reading the run: ");
  press('q');
  EXPECT_EQ(exit_status(), 0);
}

TEST_F(TerminalWatchTest, SaysInALineThatItIsStillReading) {
  std::filesystem::resize_file(run_ / "metrics.jsonl", std::uintmax_t{1} << 40);
  start({.term = "dumb"});
  drawn_until("reading the run: ");
  ASSERT_EQ(::kill(child_, SIGTERM), 0);
  EXPECT_EQ(exit_status(), static_cast<int>(ErrorCode::kTerminated));
}

TEST_F(TerminalWatchTest, HasNoColoursWhereNobodyWantsThem) {
  start({.term = "xterm", .no_color = "1"});
  drawn_until("step 7/30");
  press('q');
  EXPECT_EQ(exit_status(), 0);
  for (const char* colour : {"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m"}) {
    EXPECT_THAT(drawn_, Not(HasSubstr(colour)));
  }
}

TEST_F(TerminalWatchTest, SaysItInALineWhereNothingCanBeRedrawn) {
  start({.term = "dumb"});
  drawn_until("step 7/30  loss 2.500");
  EXPECT_EQ(exit_status(), 0);
  EXPECT_THAT(drawn_, Not(HasSubstr("\x1b")));
}

TEST_F(TerminalWatchTest, GivesTheTerminalBackWhileItIsStopped) {
  start_as_job({.term = "xterm"});
  drawn_until("step 7/30");
  drawn_.clear();
  press('\x1a');
  EXPECT_THAT(drawn_until("stopped "), HasSubstr("\x1b[?25h\x1b[?1049l"));
  const std::string in_order = "stopped in order";
  drawn_until(in_order);
  drawn_.erase(0, drawn_.find(in_order) + in_order.size());  // a part of the redraw may have
                                                             // arrived too
  EXPECT_THAT(drawn_until("step 7/30"), HasSubstr("\x1b[?1049h"));
  press('q');  // received as a single key again, without a line end
  EXPECT_EQ(exit_status(), 0);
}

TEST_F(TerminalWatchTest, LeavesTheTerminalInOrderWhenItIsEnded) {
  start({.term = "xterm"});
  drawn_until("step 7/30");
  ASSERT_EQ(::kill(child_, SIGTERM), 0);
  EXPECT_EQ(exit_status(), static_cast<int>(ErrorCode::kTerminated));
  EXPECT_THAT(drawn_, HasSubstr("\x1b[?1049l"));
}

}  // namespace
}  // namespace motley
