#include "comm/transport/pending.h"

#include <memory>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley {
namespace {

using testing::StartsWith;

TEST(Buffer, HoldsHeaderAndPayloadInOnePiece) {
  Buffer buffer(100);
  buffer.set_payload_bytes(10);
  EXPECT_EQ(buffer.payload().data(), buffer.header().data() + kFrameHeaderBytes);
  EXPECT_EQ(buffer.message().size(), kFrameHeaderBytes + 10);
  EXPECT_EQ(buffer.message_space().size(), kFrameHeaderBytes + 100);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.payload().data()) % 64, 0U);
}

TEST(Buffer, IsEmptyAfterItMoved) {
  Buffer buffer(100);
  const Buffer moved = std::move(buffer);
  EXPECT_EQ(moved.payload_bytes_max(), 100U);
  EXPECT_EQ(buffer.payload_bytes_max(), 0U);  // NOLINT(bugprone-use-after-move)
  EXPECT_TRUE(buffer.payload().empty());
}

TEST(Pending, GivesTheBufferBack) {
  auto completion = std::make_shared<Completion>();
  Pending pending(completion);
  EXPECT_FALSE(pending.done());
  completion->finish(Buffer(7));
  EXPECT_TRUE(pending.done());
  const auto outcome = pending.wait(Deadline::after_s(0), "it");
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->payload_bytes_max(), 7U);
  EXPECT_FALSE(pending.valid());
}

TEST(Pending, WakesTheWaiter) {
  auto completion = std::make_shared<Completion>();
  std::jthread transport([completion] { completion->finish(Buffer(1)); });
  EXPECT_TRUE(Pending(completion).wait(Deadline::after_s(20), "it").ok());
}

TEST(Pending, NamesWhatDidNotCome) {
  Pending pending(std::make_shared<Completion>());
  const auto outcome = pending.wait(Deadline::after_s(0.5), "the moon");
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, ErrorCode::kPeer);
  EXPECT_EQ(outcome.error().what, "waiting for the moon: timed out after 0.5 s");
  EXPECT_NE(outcome.error().remedy, "");
}

TEST(Pending, IsWaitedForWhileTheGroupGetsOn) {
  ProgressClock group;
  auto completion = std::make_shared<Completion>();
  std::jthread others([&] {
    for (int i = 0; i < 30; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      group.touch();
    }
    completion->finish(Buffer(1));
  });
  const auto outcome = Pending(completion).wait(StallTimeout(0.2, group).deadline(), "it");
  EXPECT_TRUE(outcome.ok()) << describe(outcome.error());
}

TEST(Notifier, IsWaitedForWhileTheGroupGetsOn) {
  ProgressClock group;
  Notifier notifier;
  std::jthread others([&] {
    for (int i = 0; i < 30; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      group.touch();
    }
    notifier.notify();
  });
  EXPECT_TRUE(notifier.wait(StallTimeout(0.2, group).deadline()));
}

TEST(Pending, IsGivenUpAWhileAfterTheGroupGotOnLast) {
  ProgressClock group;
  const Deadline deadline = StallTimeout(0.2, group).deadline();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  group.touch();
  const double start_s = now_s();
  EXPECT_FALSE(Pending(std::make_shared<Completion>()).wait(deadline, "it").ok());
  EXPECT_GE(now_s() - start_s, 0.19);
}

TEST(Pending, PutsWhatWasWaitedForBeforeAnError) {
  auto completion = std::make_shared<Completion>();
  completion->finish(Error{ErrorCode::kPeer, "rank 3 was lost", "", ""});
  const auto outcome = Pending(completion).wait(Deadline::after_s(0), "the moon");
  ASSERT_FALSE(outcome.ok());
  EXPECT_THAT(outcome.error().what, StartsWith("waiting for the moon: rank 3 was lost"));
}

TEST(Pending, MayBeDroppedBeforeItEnds) {
  auto completion = std::make_shared<Completion>();
  { const Pending dropped(completion); }
  completion->finish(Buffer(1));
  EXPECT_TRUE(completion->done());
}

TEST(Notifier, RingsForTheFirstOfManyToEnd) {
  const auto notifier = std::make_shared<Notifier>();
  auto first = std::make_shared<Completion>();
  auto second = std::make_shared<Completion>();
  for (const auto& completion : {first, second}) Pending(completion).notify_when_done(notifier);
  EXPECT_FALSE(notifier->wait(Deadline::after_s(0)));
  const std::jthread other([&] { second->finish(Buffer(1)); });
  EXPECT_TRUE(notifier->wait(Deadline::after_s(20)));
  EXPECT_TRUE(second->done());
  EXPECT_FALSE(notifier->wait(Deadline::after_s(0))) << "it rang once";
}

// As in an all-reduce: one thread waits for the first of many operations and then checks all,
// while several other threads complete them. It must not miss the last notification.
TEST(Notifier, NeverLosesARingOfManyThreads) {
  constexpr int kThreads = 4;
  constexpr std::size_t kEach = 300;
  const auto notifier = std::make_shared<Notifier>();
  std::vector<std::shared_ptr<Completion>> completions(kThreads * kEach);
  std::vector<Pending> pending;
  for (auto& completion : completions) {
    completion = std::make_shared<Completion>();
    pending.emplace_back(completion);
  }
  std::vector<std::jthread> ringers;
  for (std::size_t first = 0; first < completions.size(); first += kEach) {
    ringers.emplace_back([&completions, first] {
      for (std::size_t i = first; i < first + kEach; ++i) completions[i]->finish(Buffer(i));
    });
  }
  for (Pending& each : pending) each.notify_when_done(notifier);  // some are complete already
  for (std::size_t ended = 0; ended < pending.size();) {
    ASSERT_TRUE(notifier->wait(Deadline::after_s(20))) << ended << " have ended";
    for (std::size_t i = 0; i < pending.size(); ++i) {
      if (!pending[i].valid() || !pending[i].done()) continue;
      const auto outcome = pending[i].wait(Deadline::after_s(0), "it");
      ASSERT_TRUE(outcome.ok());
      EXPECT_EQ(outcome->payload_bytes_max(), i);
      ++ended;
    }
  }
}

// The transport may complete an operation at the moment at which its waiter abandons it.
TEST(Pending, MayBeDroppedWhileItEnds) {
  for (int round = 0; round < 2000; ++round) {
    auto completion = std::make_shared<Completion>();
    Pending pending(completion);
    const std::jthread transport([completion] { completion->finish(Buffer(1)); });
    const auto outcome = pending.wait(Deadline::after_s(0), "it");
    EXPECT_TRUE(outcome.ok() || outcome.error().code == ErrorCode::kPeer);
  }
}

TEST(Notifier, RingsAtOnceForWhatHasEnded) {
  const auto notifier = std::make_shared<Notifier>();
  auto completion = std::make_shared<Completion>();
  completion->finish(Buffer(1));
  Pending(completion).notify_when_done(notifier);
  EXPECT_TRUE(notifier->wait(Deadline::after_s(0)));
}

}  // namespace
}  // namespace motley
