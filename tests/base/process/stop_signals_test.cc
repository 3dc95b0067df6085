#include "base/process/stop_signals.h"

#include <unistd.h>

#include <gtest/gtest.h>

namespace motley {
namespace {

bool is_blocked(int signal) {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return sigismember(&mask, signal) == 1;
}

TEST(StopSignals, TurnSignalsIntoErrors) {
  StopSignals signals;
  EXPECT_FALSE(signals.take().has_value());
  ::raise(SIGINT);
  EXPECT_EQ(signals.take()->code, ErrorCode::kInterrupted);
  ::raise(SIGTERM);
  EXPECT_EQ(signals.take()->code, ErrorCode::kTerminated);
  EXPECT_FALSE(signals.take().has_value());
}

TEST(StopSignals, MakeABrokenPipeAnErrorLikeAnyOther) {
  StopSignals signals;
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  EXPECT_EQ(::write(ends[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
  ::close(ends[1]);
}

TEST(StopSignals, RestoreWhatWasBeforeAndSwallowWhatCameMeanwhile) {
  {
    StopSignals signals;
    EXPECT_TRUE(is_blocked(SIGINT));
    ::raise(SIGINT);
  }
  EXPECT_FALSE(is_blocked(SIGINT));
  EXPECT_FALSE(is_blocked(SIGTERM));
}

}  // namespace
}  // namespace motley
