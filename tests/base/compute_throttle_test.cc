#include "base/throttle/compute_throttle.h"

#include <functional>

#include <gtest/gtest.h>

namespace motley {
namespace {

// A thread on a processor whose time the test sets.
class ThrottledWork : public testing::Test {
 protected:
  ComputeThrottle throttle(double cores, int threads) {
    return {cores,
            threads,
            {[this] { return cpu_s_; }, [this] { return now_s_; },
             [this](double seconds) { now_s_ += seconds + oversleep_s_; }}};
  }

  // At full speed.
  void work(double seconds) {
    cpu_s_ += seconds;
    now_s_ += seconds;
  }

  void lose(double seconds) { now_s_ += seconds; }

  // The duration of `pieces`.
  double duration_of(ComputeThrottle throttle,
                     const std::function<void(ComputeThrottle&)>& pieces) {
    throttle.begin();
    const double start_s = now_s_;
    pieces(throttle);
    return now_s_ - start_s;
  }

  double cpu_s_ = 5;
  double now_s_ = 100;
  double oversleep_s_ = 0;
};

TEST_F(ThrottledWork, TakesAsLongAsAtItsShare) {
  const auto piece = [&](ComputeThrottle& each) {
    work(0.02);
    each.end();
  };
  EXPECT_NEAR(duration_of(throttle(0.25, 1), piece), 0.08, 1e-12);
  EXPECT_NEAR(duration_of(throttle(0.5, 1), piece), 0.04, 1e-12);
  EXPECT_NEAR(duration_of(throttle(1.5, 3), piece), 0.04, 1e-12) << "three threads worked";
}

TEST_F(ThrottledWork, IsNotLimitedByASufficientShare) {
  const auto piece = [&](ComputeThrottle& each) {
    work(0.02);
    each.end();
  };
  EXPECT_NEAR(duration_of(throttle(0, 1), piece), 0.02, 1e-12);
  EXPECT_NEAR(duration_of(throttle(1, 1), piece), 0.02, 1e-12);
  EXPECT_NEAR(duration_of(throttle(4, 2), piece), 0.02, 1e-12);
}

// A quota would let it run at full speed after the wait.
TEST_F(ThrottledWork, IsAsSlowAfterAWait) {
  EXPECT_NEAR(duration_of(throttle(0.25, 1),
                          [&](ComputeThrottle& each) {
                            lose(1);
                            work(0.02);
                            each.end(/*waited_s=*/1);
                          }),
              1.08, 1e-12);
}

TEST_F(ThrottledWork, DoesNotCountTheProcessorTimeOfAWait) {
  EXPECT_NEAR(duration_of(throttle(0.5, 1),
                          [&](ComputeThrottle& each) {
                            work(0.3);
                            each.end(/*waited_s=*/0.3);
                          }),
              0.3, 1e-12);
}

TEST_F(ThrottledWork, CountsTimeLostToOthersAsPause) {
  EXPECT_NEAR(duration_of(throttle(0.25, 1),
                          [&](ComputeThrottle& each) {
                            work(0.02);
                            lose(0.05);
                            each.end();
                          }),
              0.08, 1e-12);
}

TEST_F(ThrottledWork, IsNotFasterLaterBecauseItLostMuch) {
  EXPECT_NEAR(duration_of(throttle(0.5, 1),
                          [&](ComputeThrottle& each) {
                            work(0.1);
                            lose(5);
                            each.end();
                            work(0.1);
                            each.end();
                          }),
              5.3, 2e-3);
}

TEST_F(ThrottledWork, KeepsItsShareOverManyShortPiecesAndLongSleeps) {
  oversleep_s_ = 1e-4;
  EXPECT_NEAR(duration_of(throttle(0.25, 1),
                          [&](ComputeThrottle& each) {
                            for (int i = 0; i < 1000; ++i) {
                              work(1e-4);
                              each.end();
                            }
                          }),
              0.4, 2e-3);
}

TEST(ComputeThrottle, SleepsByTheSystemsClocks) {
  const ThrottleClocks clocks = ThrottleClocks::of_system();
  const double start_s = clocks.now_s();
  clocks.sleep_s(2e-3);
  EXPECT_GE(clocks.now_s() - start_s, 2e-3);
  EXPECT_GT(clocks.cpu_s(), 0);
}

}  // namespace
}  // namespace motley
