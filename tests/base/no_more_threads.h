// NoMoreThreads: while one exists, no thread can be started in this process. Emulates the limit of
// threads (ulimit -u), which does not bind root.
#pragma once

#include <pthread.h>

#include <cstddef>

#include <gtest/gtest.h>

namespace motley::test {

class NoMoreThreads {
 public:
  NoMoreThreads() {
    EXPECT_EQ(pthread_getattr_default_np(&before_), 0);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    // No machine has memory for such a stack: pthread_create fails with EAGAIN, as at the limit.
    EXPECT_EQ(pthread_attr_setstacksize(&huge, std::size_t{1} << 60), 0);
    EXPECT_EQ(pthread_setattr_default_np(&huge), 0);
    pthread_attr_destroy(&huge);
  }

  ~NoMoreThreads() {
    EXPECT_EQ(pthread_setattr_default_np(&before_), 0);
    pthread_attr_destroy(&before_);
  }

  NoMoreThreads(const NoMoreThreads&) = delete;
  NoMoreThreads& operator=(const NoMoreThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

}  // namespace motley::test
