// The page served by `motley watch`: a separate process over a run's folder, until a signal.
#include "watch/browser/browser_watch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/watch/plain_client.h"
#include "tests/watch/written_run.h"

namespace motley {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class BrowserWatchTest : public WrittenRun {
 protected:
  // Starts the server in a child process and waits for its address. The child exits with the
  // error's code.
  void watch(bool until_eof = false) {
    int ends[2];
    int input[2];
    ASSERT_EQ(::pipe(ends), 0);
    ASSERT_EQ(::pipe2(input, O_CLOEXEC), 0);
    input_ = OwnedFd(input[1]);
    const OwnedFd their_input(input[0]);
    child_ = ::fork();
    ASSERT_GE(child_, 0);
    if (child_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::dup2(their_input.get(), STDIN_FILENO);
      input_.reset();
      const auto watched = watch_in_browser(dir_, {.until_eof = until_eof});
      ::_exit(watched.ok() ? 0 : static_cast<int>(watched.error().code));
    }
    ::close(ends[1]);
    const OwnedFd out(ends[0]);
    char piece = 0;
    while (::read(out.get(), &piece, 1) == 1 && piece != '\n') address_ += piece;
  }

  [[nodiscard]] std::uint16_t port() const {
    const std::size_t at = address_.find(':', 5);
    return static_cast<std::uint16_t>(std::atoi(address_.c_str() + at + 1));
  }

  // The child's exit status after the signal.
  [[nodiscard]] int status_after(int signal) const {
    ::kill(child_, signal);
    return end_status();
  }

  [[nodiscard]] int end_status() const {
    int status = 0;
    ::waitpid(child_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  pid_t child_ = -1;
  OwnedFd input_;
  std::string address_;
};

TEST_F(BrowserWatchTest, ServesARunUntilThePersonHasSeenEnough) {
  add_steps(1, 7);
  watch();
  ASSERT_THAT(address_, StartsWith("http://127.0.0.1:"));
  const std::string token = address_.substr(address_.find("token="));
  PlainClient client(port());
  client.say("GET /api/state?" + token + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port()) +
             "\r\n\r\n");
  EXPECT_THAT(client.hear_until("\"verdict\""), HasSubstr("\"step\":7"));
  EXPECT_EQ(status_after(SIGINT), 0);
}

TEST_F(BrowserWatchTest, ServesWhileALongRunIsBeingRead) {
  add_steps(1, 7);
  std::filesystem::resize_file(dir_ / "metrics.jsonl", std::uintmax_t{1} << 40);
  watch();
  ASSERT_THAT(address_, StartsWith("http://127.0.0.1:"));
  const std::string token = address_.substr(address_.find("token="));
  PlainClient client(port());
  client.say("GET /api/state?" + token + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port()) +
             "\r\n\r\n");
  EXPECT_THAT(client.hear_until("\"verdict\""), HasSubstr("reading the run: "));
  EXPECT_EQ(status_after(SIGINT), 0);
}

TEST_F(BrowserWatchTest, AnotherSignalIsToldAsSuch) {
  watch();
  EXPECT_EQ(status_after(SIGTERM), static_cast<int>(ErrorCode::kTerminated));
}

TEST_F(BrowserWatchTest, EndsWithItsInputWhereItWasAskedTo) {
  watch(/*until_eof=*/true);
  ASSERT_THAT(address_, StartsWith("http://127.0.0.1:"));
  input_.reset();
  EXPECT_EQ(end_status(), 0);
}

TEST_F(BrowserWatchTest, AFolderWithoutARunIsRefused) {
  const auto watched = watch_in_browser(dir_ / "none", {});
  ASSERT_FALSE(watched.ok());
  EXPECT_EQ(watched.error().code, ErrorCode::kConfig);
}

}  // namespace
}  // namespace motley
