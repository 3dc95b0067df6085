// Times of a device's work, on a slowed far device; and waits for a hanging one.
#include "models/device/device_timeline.h"

#include <functional>
#include <optional>
#include <vector>

#include <torch/version.h>

#include "base/clock.h"
#include "models/device/device_copies.h"
#include "models/device/device_stall.h"
#include "tests/models/far_fixture.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr bool kEventsHaveTimes = TORCH_VERSION_MAJOR > 2 ||
                                  (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 6);

class SlowDevice : public FarDevice {
 protected:
  static constexpr double kOperation_s = 10e-3;

  SlowDevice() { motley_far_slow_down(kOperation_s); }

  ~SlowDevice() override {
    motley_far_hang(0);
    motley_far_slow_down(0);
  }

  // Submits operations, which the host does not wait for.
  void compute(int operations) {
    for (int i = 0; i < operations; ++i) there_.add_(1);
  }

  at::Tensor there_ = on_device(values({8}));
};

TEST_F(SlowDevice, HasATimelineWhereItsEventsHaveTimes) {
  EXPECT_EQ(DeviceTimeline::make(ComputeDevice()), nullptr);
  EXPECT_EQ(DeviceTimeline::make(device_) != nullptr, kEventsHaveTimes);
}

TEST_F(SlowDevice, MarksHaveTheTimesOfItsWorkOnTheHostsClock) {
  const auto timeline = DeviceTimeline::make(device_);
  if (timeline == nullptr) GTEST_SKIP() << "its events have no times";
  const double start_s = now_s();
  timeline->mark();
  compute(5);
  timeline->mark();
  compute(3);
  timeline->mark();
  EXPECT_LT(now_s() - start_s, 3 * kOperation_s) << "the host waited";
  timeline->finish();
  const double end_s = now_s();
  const std::vector<double> timestamps_s = timeline->reached();
  ASSERT_THAT(timestamps_s, SizeIs(3));
  EXPECT_NEAR(timestamps_s[1] - timestamps_s[0], 5 * kOperation_s, kOperation_s);
  EXPECT_NEAR(timestamps_s[2] - timestamps_s[1], 3 * kOperation_s, kOperation_s);
  EXPECT_GE(timestamps_s[0], start_s - 1e-3);
  EXPECT_LE(timestamps_s[2], end_s);
  EXPECT_NEAR(timestamps_s[2], end_s, 2 * kOperation_s);
}

TEST_F(SlowDevice, MarksThatItHasNotComeToAreToldLater) {
  const auto timeline = DeviceTimeline::make(device_);
  if (timeline == nullptr) GTEST_SKIP() << "its events have no times";
  motley_far_reset_counters();
  for (int round = 0; round < 3; ++round) {
    compute(2);
    timeline->mark();
    EXPECT_THAT(timeline->reached(), IsEmpty());
    EXPECT_EQ(counters().host_waits, static_cast<std::uint64_t>(round));
    timeline->finish();
    EXPECT_THAT(timeline->reached(), SizeIs(1));
  }
}

// The duration of a wait on the clock.
struct Waited {
  double clock_s = 0;
  std::optional<DeviceStall> stood;
};

Waited waited_in(const std::function<void()>& wait) {
  Waited waited;
  const double start_s = now_s();
  try {
    wait();
  } catch (const DeviceStall& stood) {
    waited.stood = stood;
  }
  waited.clock_s = now_s() - start_s;
  return waited;
}

TEST_F(SlowDevice, WaitingLeavesTheProcessorFree) {
  compute(50);
  const Waited waited = waited_in([&] { device_.finish(); });
  EXPECT_FALSE(waited.stood);
  EXPECT_GT(waited.clock_s, 40 * kOperation_s);
  // It polls at increasing intervals, up to half a millisecond.
  EXPECT_GT(counters().questions, 0U);
  EXPECT_LT(static_cast<double>(counters().questions), 60 + waited.clock_s / 0.5e-3);
}

TEST_F(SlowDevice, OneThatHangsIsWaitedForNoLongerThanPatienceLasts) {
  const ComputeDevice hasty = ComputeDevice::open("privateuseone:1", 0.2).value();
  DeviceCopies copies(hasty);
  const at::Tensor there = at::zeros({4}, at::device(hasty.torch()));
  const auto download = copies.download(there + 1);
  motley_far_hang(1);
  for (const auto& wait :
       std::vector<std::function<void()>>{[&] { hasty.finish(); }, [&] { download.wait(); }}) {
    const Waited waited = waited_in(wait);
    ASSERT_TRUE(waited.stood);
    EXPECT_EQ(waited.stood->device(), "privateuseone:1");
    EXPECT_EQ(waited.stood->waited_s(), 0.2);
    EXPECT_GE(waited.clock_s, 0.2);
    EXPECT_LT(waited.clock_s, 2);
  }
  motley_far_hang(0);
  download.wait();
  EXPECT_TRUE(same_bits(download.host, at::ones({4})));
}

// Its memory is not released: the device may still write there.
TEST_F(SlowDevice, CopiesUnderWayOnOneThatHangsAreLeftAlone) {
  at::Tensor host = at::zeros({4});
  const at::Tensor there = on_device(at::ones({4}));
  const double start_s = now_s();
  {
    DeviceCopies copies(device_);
    (void)copies.download(there, host);
    motley_far_hang(1);
  }
  EXPECT_LT(now_s() - start_s, 5);
  EXPECT_EQ(host.use_count(), 3) << "this test, the device and its waiter";
  motley_far_hang(0);
  device_.finish();
}

}  // namespace
}  // namespace motley
