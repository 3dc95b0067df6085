// A transfer that shares a link with a pipeline's frames. The link is simulated: a FIFO queue with
// a rate.
#include "checkpoint/transfer/transfer_rate_limiter.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace motley {
namespace {

constexpr double kPart_s = 0.0005;     // 64 KiB at 1 Gbit/s
constexpr double kLatency_s = 0.0003;  // round trip

// The progress of a transfer over an interval.
struct Share {
  int parts = 0;
  double link_share = 0;  // fraction of the time in which its parts used the link
};

// A link on which the pipeline sends frames of `frame_s` seconds each. `next_frame_s(t)` is the
// start of the first frame at or after t.
class SimulatedLink {
 public:
  SimulatedLink(double frame_s, std::function<double(double)> next_frame_s)
      : frame_s_(frame_s), next_frame_s_(std::move(next_frame_s)), frame_at_s_(next_frame_s_(0)) {}

  // Sends a part now; returns when its answer arrives.
  double send_part(double now_s) {
    while (frame_at_s_ <= now_s) {
      free_at_s_ = std::max(free_at_s_, frame_at_s_) + frame_s_;
      frames_ += frame_s_ / kPart_s;
      delayed_s_ += std::clamp(part_until_s_ - frame_at_s_, 0.0, kPart_s);
      frame_at_s_ = next_frame_s_(frame_at_s_ + frame_s_);
    }
    free_at_s_ = std::max(free_at_s_, now_s) + kPart_s;
    part_until_s_ = free_at_s_;
    return free_at_s_ + kLatency_s;
  }

  // The pipeline's traffic since the last call, in parts.
  double take_frames() { return is_seen_ ? std::exchange(frames_, 0) : 0; }

  void hide_frames() { is_seen_ = false; }

  [[nodiscard]] double delayed_s() const { return delayed_s_; }

 private:
  double frame_s_;
  std::function<double(double)> next_frame_s_;
  double frame_at_s_;
  double free_at_s_ = 0;
  double frames_ = 0;
  bool is_seen_ = true;
  double part_until_s_ = 0;  // when the last part has left the link
  double delayed_s_ = 0;     // of frames, by parts ahead of them
};

Share run_until(TransferRateLimiter& limiter, SimulatedLink& link, double from_s, double until_s) {
  Share share;
  for (double now = from_s; now < until_s;) {
    const double answered = link.send_part(now);
    now = answered + limiter.pause_after_s({answered - now, link.take_frames()}, answered);
    ++share.parts;
  }
  share.link_share = share.parts * kPart_s / (until_s - from_s);
  return share;
}

constexpr double kMany = 1e6;  // traffic in units of parts

double never(double) {
  return 1e9;
}

TEST(TransferRateLimiter, UsesAnIdleLinkForAtMostHalfOfTheTime) {
  TransferRateLimiter limiter;
  SimulatedLink link(0, never);
  const Share share = run_until(limiter, link, 0, 10);
  EXPECT_LE(share.link_share, 0.5);
  EXPECT_GE(share.link_share, 0.3);  // the latency of the answers costs time, too
}

TEST(TransferRateLimiter, HardlyUsesABusyLinkAndNeverLeavesIt) {
  TransferRateLimiter limiter;
  SimulatedLink idle(0, never);
  (void)run_until(limiter, idle, 0, 1);
  // Frames of 50 ms, back to back.
  SimulatedLink busy(0.05, [](double from_s) { return from_s; });
  const Share share = run_until(limiter, busy, 0, 60);
  EXPECT_LE(share.link_share, 0.01);
  // A part waits 50 ms at most; then follows the longest pause.
  EXPECT_GE(share.parts, 60 / (TransferRateLimiter::kLongestPause_s + 0.06));
}

// A step of 400 ms that uses the link in its first half.
TEST(TransferRateLimiter, WorksInThePausesOfThePipeline) {
  TransferRateLimiter limiter;
  constexpr double kStep_s = 0.4;
  constexpr double kFrame_s = 0.02;
  SimulatedLink link(kFrame_s, [&](double from_s) {
    const double in_step_s = from_s - kStep_s * static_cast<int>(from_s / kStep_s);
    return in_step_s < kStep_s / 2 ? from_s : from_s + kStep_s - in_step_s;
  });
  const Share share = run_until(limiter, link, 0, 60);
  EXPECT_GE(share.link_share, 0.1);            // of at most 0.25: half the time idle, half of that
                                               // used
  EXPECT_LE(link.delayed_s(), 0.01 * 60 / 2);  // 1 % of the time that frames take
}

TEST(TransferRateLimiter, StaysAwayForLongerEachTimeInARow) {
  TransferRateLimiter limiter;
  EXPECT_DOUBLE_EQ(limiter.pause_after_s({0.001, kMany}, 0), 0.001);
  EXPECT_DOUBLE_EQ(limiter.pause_after_s({0.01, kMany}, 1), 0.04);
  EXPECT_DOUBLE_EQ(limiter.pause_after_s({0.01, kMany}, 2), 0.08);
  EXPECT_DOUBLE_EQ(limiter.pause_after_s({0.01, kMany}, 3), 0.16);
  EXPECT_DOUBLE_EQ(limiter.pause_after_s({0.01, kMany}, 4), 0.32);
  EXPECT_DOUBLE_EQ(limiter.pause_after_s({0.01, kMany}, 5), 0.32);
  EXPECT_DOUBLE_EQ(limiter.pause_after_s({0.001, kMany}, 6), 0.001);
  EXPECT_DOUBLE_EQ(limiter.pause_after_s({0.01, kMany}, 7), 0.04);
}

TEST(TransferRateLimiter, PausesForNoLongerThanTheFloorAllows) {
  TransferRateLimiter limiter;
  (void)limiter.pause_after_s({0.001, kMany}, 0);
  EXPECT_DOUBLE_EQ(limiter.pause_after_s({0.3, kMany}, 1), TransferRateLimiter::kLongestPause_s);
  // At most half of the time is used nevertheless.
  EXPECT_DOUBLE_EQ(limiter.pause_after_s({4, kMany}, 2), 4);
}

TEST(TransferRateLimiter, DoesNotTakeALateThreadForABusyLink) {
  TransferRateLimiter limiter;
  (void)limiter.pause_after_s({0.0002, kMany}, 0);
  EXPECT_DOUBLE_EQ(limiter.pause_after_s({0.002, kMany}, 1), 0.002);
  EXPECT_GT(limiter.pause_after_s({0.003, kMany}, 2), 0.003);
}

// Threads of both ends may wait much longer for a processor; no frames explain the delay.
TEST(TransferRateLimiter, DoesNotTakeABusyProcessorForABusyLink) {
  TransferRateLimiter limiter;
  (void)limiter.pause_after_s({0.001, 0}, 0);
  for (int i = 1; i < 20; ++i) {
    EXPECT_DOUBLE_EQ(limiter.pause_after_s({0.04, 1}, i), 0.04);
  }
}

TEST(TransferRateLimiter, StaysAwayForWhatFramesExplain) {
  TransferRateLimiter limiter;
  (void)limiter.pause_after_s({0.001, 0}, 0);
  EXPECT_DOUBLE_EQ(limiter.pause_after_s({0.02, 10}, 1), 0.04);
  EXPECT_DOUBLE_EQ(limiter.pause_after_s({0.02, 10}, 2), 0.08);
}

// Frames of other ranks on the machine, of which this rank does not know, or other traffic.
TEST(TransferRateLimiter, HardlyUsesALinkThatUnseenFramesKeepBusy) {
  TransferRateLimiter limiter;
  SimulatedLink idle(0, never);
  (void)run_until(limiter, idle, 0, 1);
  SimulatedLink busy(0.05, [](double from_s) { return from_s; });
  busy.hide_frames();
  EXPECT_LE(run_until(limiter, busy, 0, 60).link_share, 0.01);
}

TEST(TransferRateLimiter, ForgetsInTenMinutesHowFastTheLinkWas) {
  TransferRateLimiter limiter;
  (void)limiter.pause_after_s({0.001, kMany}, 0);
  for (double now = 1; now < 590; now += 1)
    EXPECT_GT(limiter.pause_after_s({0.01, kMany}, now), 0.03);
  for (double now = 590; now < 670; now += 1) (void)limiter.pause_after_s({0.01, kMany}, now);
  EXPECT_DOUBLE_EQ(limiter.pause_after_s({0.01, kMany}, 670), 0.01);
}

}  // namespace
}  // namespace motley
