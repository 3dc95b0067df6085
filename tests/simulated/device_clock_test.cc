#include "simulated/device_clock.h"

#include <memory>

#include <gtest/gtest.h>

namespace motley {
namespace {

// A clock whose sleeps end late by a set amount.
class FakeTime final : public WaitTime {
 public:
  struct State {
    double now_s = 100;
    double cpu_s = 7;
    double late_s = 0;  // of every sleep
    int sleeps = 0;
  };

  explicit FakeTime(State& state) : state_(state) {}

  double now_s() override { return state_.now_s; }

  double thread_cpu_s() override { return state_.cpu_s; }

  void sleep_until(double at_s) override {
    state_.now_s = at_s + state_.late_s;
    ++state_.sleeps;
  }

 private:
  State& state_;
};

class DeviceClockTest : public testing::Test {
 protected:
  void compute(double seconds) {
    clock_.begin();
    clock_.pass(seconds, [] { return false; });
  }

  // The thread's work between two computations.
  void work(double seconds) {
    state_.now_s += seconds;
    state_.cpu_s += seconds;
  }

  void wait_for_a_message(double seconds) { state_.now_s += seconds; }

  FakeTime::State state_;
  DeviceClock clock_{std::make_unique<FakeTime>(state_)};
};

TEST_F(DeviceClockTest, TakesAsLongAsItIsTold) {
  compute(2);
  EXPECT_DOUBLE_EQ(state_.now_s, 102);
}

TEST_F(DeviceClockTest, LatenessDoesNotAddUp) {
  state_.late_s = 0.25;
  for (int i = 0; i < 100; ++i) compute(1);
  EXPECT_NEAR(state_.now_s, 200.25, 1e-9);
}

TEST_F(DeviceClockTest, WorkInBetweenTakesItsTime) {
  state_.late_s = 0.25;
  compute(1);
  work(0.5);
  compute(1);
  EXPECT_NEAR(state_.now_s, 102.75, 1e-9);
}

// It had to wait in any case, late or not.
TEST_F(DeviceClockTest, AMessageThatCameLaterDecidesWhenItBegins) {
  state_.late_s = 0.25;
  compute(1);
  wait_for_a_message(3);
  compute(1);
  EXPECT_NEAR(state_.now_s, 105.5, 1e-9);
}

TEST_F(DeviceClockTest, ComputationsTooShortToSleepForAreMadeUp) {
  state_.late_s = 0.5;
  compute(1);
  for (int i = 0; i < 4; ++i) compute(0.1);
  EXPECT_EQ(state_.sleeps, 1);
  compute(1);
  EXPECT_NEAR(state_.now_s, 102.9, 1e-9);
}

TEST_F(DeviceClockTest, ChoresFillTheTimeAndNoMore) {
  int chores = 0;
  clock_.begin();
  clock_.pass(1, [&] {
    ++chores;
    work(0.3);
    return true;
  });
  EXPECT_EQ(chores, 4);
  clock_.pass(1, [] { return false; });
  EXPECT_NEAR(state_.now_s, 102, 1e-9);
}

}  // namespace
}  // namespace motley
