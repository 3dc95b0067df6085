#include "base/system/non_blocking_writer.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "tests/base/no_more_threads.h"

namespace motley {
namespace {

class NonBlockingWriterTest : public testing::Test {
 protected:
  NonBlockingWriterTest() { EXPECT_EQ(::pipe(pipe_), 0); }

  ~NonBlockingWriterTest() override {
    ::close(pipe_[0]);
    if (pipe_[1] >= 0) ::close(pipe_[1]);
  }

  // Closes the write end and returns all data that was written.
  std::string read_all() {
    ::close(pipe_[1]);
    pipe_[1] = -1;
    std::string all;
    char some[4096];
    for (ssize_t got = 0; (got = ::read(pipe_[0], some, sizeof some)) > 0;) {
      all.append(some, static_cast<std::size_t>(got));
    }
    return all;
  }

  int pipe_[2] = {-1, -1};
};

TEST_F(NonBlockingWriterTest, ReturnsAfterTheTextWasWritten) {
  {
    NonBlockingWriter writer(pipe_[1]);
    for (const char* text : {"one ", "two ", "three"}) EXPECT_TRUE(writer.write(text));
    char some[64];
    EXPECT_EQ(::read(pipe_[0], some, sizeof some), 13);
    EXPECT_TRUE(writer.write("four"));
  }
  EXPECT_EQ(read_all(), "four");
}

TEST_F(NonBlockingWriterTest, DropsTextsWhileTheReaderIsStoppedAndRecovers) {
  const std::string larger_than_a_pipe(1 << 20, 'x');
  NonBlockingWriter writer(pipe_[1]);
  const double begun_s = now_s();
  EXPECT_TRUE(writer.write(larger_than_a_pipe));
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(writer.write("lost"));
  EXPECT_LT(now_s() - begun_s, 1);
  std::string got(larger_than_a_pipe.size(), ' ');
  for (std::size_t at = 0; at < got.size();) {
    const ssize_t bytes = ::read(pipe_[0], got.data() + at, got.size() - at);
    ASSERT_GT(bytes, 0);
    at += static_cast<std::size_t>(bytes);
  }
  EXPECT_EQ(got, larger_than_a_pipe);
  // The thread may not have written the first text yet.
  while (!writer.write("again")) ::usleep(1000);
  char some[64];
  EXPECT_EQ(::read(pipe_[0], some, sizeof some), 5);
}

TEST_F(NonBlockingWriterTest, DropsTextsWithoutAThreadAndRestoresTheSignalMask) {
  NonBlockingWriter writer(pipe_[1]);
  std::optional<test::NoMoreThreads> no_more_threads(std::in_place);
  EXPECT_FALSE(writer.write("lost"));
  no_more_threads.reset();
  sigset_t blocked;
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &blocked), 0);
  EXPECT_EQ(sigismember(&blocked, SIGTERM), 0);
  EXPECT_TRUE(writer.write("again"));
  char some[64];
  EXPECT_EQ(::read(pipe_[0], some, sizeof some), 5);
}

}  // namespace
}  // namespace motley
