#include "training/device_watchdog.h"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace motley {
namespace {

constexpr double kStallTimeout_s = 0.1;
constexpr Action kForward{ActionKind::kForward, ChunkId{0}, MicroId{3}};

void sleep_s(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

class DeviceWatchTest : public testing::Test {
 protected:
  // Whether the watch has called its handler; waits longer than its timeout.
  [[nodiscard]] bool has_called() {
    for (int i = 0; i < 100 && !called_; ++i) sleep_s(0.005);
    return called_;
  }

  Activity activity_;
  std::atomic<bool> called_ = false;
  std::string words_;
  DeviceWatchdog watch_{activity_, kStallTimeout_s, [this](const std::string& words) {
                          words_ = words;
                          called_ = true;
                        }};
};

TEST_F(DeviceWatchTest, CallsWhereAnActionDoesNotEnd) {
  activity_.set(12, kForward);
  ASSERT_TRUE(has_called());
  EXPECT_EQ(words_, "forward of micro-batch 3");
}

TEST_F(DeviceWatchTest, IsSilentWhileWorkIsFinished) {
  activity_.set(12, kForward);
  for (int i = 0; i < 50; ++i) {
    activity_.work().add_one();
    sleep_s(0.01);
  }
  EXPECT_FALSE(called_);
}

TEST_F(DeviceWatchTest, IsSilentWhileOthersAreWaitedFor) {
  activity_.set(12, kForward);
  {
    const Activity::Waiting waiting(activity_);
    EXPECT_FALSE(has_called());
  }
  EXPECT_TRUE(has_called());
}

TEST_F(DeviceWatchTest, IsSilentBetweenSteps) {
  activity_.set(12, kForward);
  activity_.clear(12);
  EXPECT_FALSE(has_called());
}

}  // namespace
}  // namespace motley
