// SIGTERM as a request to leave.
#include "worker/train/end_request.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <semaphore>

#include <gtest/gtest.h>

namespace motley {
namespace {

// The wait status of a process that runs `body`, and then exits with status 0.
int status_of(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

int exit_status(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(EndRequest, ReportsTheFirstSignal) {
  std::binary_semaphore reported(0);
  const EndRequest request([&] { reported.release(); });
  ::raise(SIGTERM);
  reported.acquire();
}

TEST(EndRequest, EndsTheProcessByTheSecond) {
  const int status = status_of([] {
    std::binary_semaphore reported(0);
    const EndRequest request([&] { reported.release(); }, 60, 0);
    ::raise(SIGTERM);
    reported.acquire();
    ::raise(SIGTERM);
    ::pause();
  });
  EXPECT_EQ(exit_status(status), 143);
}

TEST(EndRequest, CountsSignalsTogetherAsOne) {
  std::counting_semaphore reported(0);
  {
    const EndRequest request([&] { reported.release(); }, 60, 60);
    ::raise(SIGTERM);
    reported.acquire();
    ::raise(SIGTERM);
  }
  EXPECT_FALSE(reported.try_acquire());
}

TEST(EndRequest, EndsTheProcessThatDoesNotLeave) {
  const int status = status_of([] {
    const EndRequest request([] {}, 0.05);
    ::raise(SIGTERM);
    for (;;) ::pause();
  });
  EXPECT_EQ(exit_status(status), 143);
}

TEST(EndRequest, RestoresTheEffectOfTheSignal) {
  EXPECT_EQ(exit_status(status_of([] {
              {
                const EndRequest request([] {});
              }
              ::raise(SIGTERM);
            })),
            -SIGTERM);
  {
    const EndRequest first([] {});
  }
  const EndRequest second([] {});
}

}  // namespace
}  // namespace motley
