// FrameSender and FrameReceiver: the same frames, whether they are encoded and decoded
// asynchronously or not.
#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/execute/frame_receiver.h"
#include "pipeline/execute/frame_sender.h"
#include "tests/support/rank_group.h"

namespace motley {
namespace {

using testing::HasSubstr;

constexpr std::size_t kBytes = 64;
constexpr int kFrames = 40;
constexpr std::uint64_t kPlanHash = 7;

FrameId frame_id(int micro) {
  return {FrameKind::kActivation, ChunkId{0}, MicroId{micro}, 1};
}

Action posted(int micro) {
  return {ActionKind::kRecvActivation, ChunkId{1}, MicroId{micro}};
}

FrameSender::Frame frame(int micro) {
  return {Rank{1}, frame_id(micro), kBytes, [micro](std::span<std::byte> send_buffer) {
            std::ranges::fill(send_buffer, static_cast<std::byte>(micro));
            return send_buffer.size();
          }};
}

using Bytes = std::vector<std::byte>;

FrameReceiver::Read copy_to(Bytes& place) {
  return [&place](std::span<const std::byte> payload) -> Result<void> {
    place.assign(payload.begin(), payload.end());
    return {};
  };
}

class FramesBeside : public testing::TestWithParam<bool> {
 protected:
  FrameLink link(Rank rank) { return {group_.at(rank), rank, /*epoch=*/1, kPlanHash}; }

  RankGroup& group() { return group_; }

 private:
  RankGroup group_{"inproc", 2};
};

TEST_P(FramesBeside, ComeAsTheyWere) {
  group().run([&](Rank self) {
    if (self == Rank{0}) {
      FrameSender sender(link(self), 5, GetParam());
      for (int micro = 0; micro < kFrames; ++micro) ASSERT_TRUE(sender.send(frame(micro)).ok());
      EXPECT_TRUE(sender.finish().ok());
      return;
    }
    FrameLink here = link(self);
    FrameReceiver receiver(GetParam());
    std::vector<Bytes> got(kFrames);
    for (int micro = 0; micro < kFrames; ++micro) {
      receiver.expect(posted(micro), here.recv(Rank{0}, frame_id(micro), Buffer(kBytes)),
                      copy_to(got[static_cast<std::size_t>(micro)]));
    }
    for (int micro = kFrames; micro-- > 0;) {
      const auto received = receiver.wait(posted(micro), soon());
      ASSERT_TRUE(received.ok()) << describe(received.error());
      EXPECT_EQ(got[static_cast<std::size_t>(micro)], Bytes(kBytes, static_cast<std::byte>(micro)));
    }
    EXPECT_EQ(receiver.count(), 0U);
  });
}

TEST_P(FramesBeside, TellOfWhatDoesNotCome) {
  FrameLink here = link(Rank{1});
  FrameReceiver receiver(GetParam());
  Bytes place;
  receiver.expect(posted(3), here.recv(Rank{0}, frame_id(3), Buffer(kBytes)), copy_to(place));
  const auto received = receiver.wait(posted(3), Deadline::after_s(0.05));
  ASSERT_FALSE(received.ok());
  EXPECT_EQ(received.error().code, ErrorCode::kPeer);
  EXPECT_THAT(received.error().what, HasSubstr("micro-batch 3"));
}

TEST_P(FramesBeside, TellWhatCannotBeRead) {
  FrameSender sender(link(Rank{0}), 5, GetParam());
  FrameLink here = link(Rank{1});
  FrameReceiver receiver(GetParam());
  receiver.expect(posted(0), here.recv(Rank{0}, frame_id(0), Buffer(kBytes)),
                  [](std::span<const std::byte>) -> Result<void> {
                    return Error{ErrorCode::kCorrupt, "no such code", "", ""};
                  });
  ASSERT_TRUE(sender.send(frame(0)).ok());
  const auto received = receiver.wait(posted(0), soon());
  ASSERT_FALSE(received.ok());
  EXPECT_EQ(received.error().what, "no such code");
}

// In the asynchronous case the error is reported without another send, since the next may come
// late.
TEST_P(FramesBeside, TellWhatCannotBeWritten) {
  FrameSender sender(link(Rank{0}), 5, GetParam());
  FrameSender::Frame broken = frame(0);
  broken.write = [](std::span<std::byte>) -> Result<std::size_t> {
    return Error{ErrorCode::kInternal, "it does not come", "", ""};
  };
  Result<void> outcome = sender.send(std::move(broken));
  if (GetParam()) {
    const Deadline deadline = soon();
    while (!sender.failure() && !deadline.passed()) std::this_thread::yield();
    ASSERT_TRUE(sender.failure());
    outcome = *sender.failure();
  }
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().what, "it does not come");
}

TEST_P(FramesBeside, TellWhenTheReceiverIsGone) {
  FrameSender sender(link(Rank{0}), 0.2, GetParam());
  group().destroy(Rank{1});
  Result<void> outcome;
  for (int micro = 0; micro < kFrames && outcome.ok(); ++micro) outcome = sender.send(frame(micro));
  if (outcome.ok()) outcome = sender.finish();
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, ErrorCode::kPeer);
}

INSTANTIATE_TEST_SUITE_P(, FramesBeside, testing::Bool(), [](const auto& each) {
  return each.param ? "Beside" : "ByTheCaller";
});

// Without a request in the meantime.
TEST(FrameReceiver, ReadsBesideWhatHasCome) {
  RankGroup group("inproc", 2);
  FrameLink from(group.at(Rank{0}), Rank{0}, 1, kPlanHash);
  FrameLink here(group.at(Rank{1}), Rank{1}, 1, kPlanHash);
  FrameReceiver receiver(/*beside=*/true);
  std::atomic<bool> is_read = false;
  receiver.expect(posted(0), here.recv(Rank{0}, frame_id(0), Buffer(kBytes)),
                  [&](std::span<const std::byte>) -> Result<void> {
                    is_read = true;
                    return {};
                  });
  FrameSender sender(from, 5, /*beside=*/true);
  ASSERT_TRUE(sender.send(frame(0)).ok());
  const Deadline deadline = soon();
  while (!is_read && !deadline.passed()) std::this_thread::yield();
  EXPECT_TRUE(is_read);
  const auto received = receiver.wait(posted(0), soon());
  ASSERT_TRUE(received.ok());
  EXPECT_EQ(received->wait_s, 0);
}

}  // namespace
}  // namespace motley
