// The contract of comm/transport/transport.h, over every transport of this build.
#include "comm/transport/transport.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/seeded_message.h"
#include "support/rank_group.h"

namespace motley {
namespace {

using testing::HasSubstr;

constexpr std::size_t kMiB = 1 << 20;

void expect_lost(const Result<Buffer>& outcome, Rank rank) {
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, ErrorCode::kPeer);
  EXPECT_THAT(outcome.error().what, HasSubstr("rank " + std::to_string(rank.value) + " was lost"));
}

class EveryTransport : public testing::TestWithParam<std::string> {
 protected:
  // Sends one message from rank 0 to rank 1, which receives it into `buffer_bytes` bytes.
  static Result<Buffer> carry(RankGroup& group, Tag tag, Buffer buffer, std::size_t buffer_bytes) {
    auto received = group.at(kRank1).recv(kRank0, tag, Buffer(buffer_bytes));
    auto sent = group.at(kRank0).send(kRank1, tag, std::move(buffer));
    auto outcome = received.wait(soon(), "a message");
    EXPECT_TRUE(sent.wait(soon(), "rank 1 to take it").ok());
    return outcome;
  }
};

TEST_P(EveryTransport, CarriesMessagesOfEverySize) {
  RankGroup group(GetParam(), 2);
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{777}, kMiB + 3, 8 * kMiB}) {
    auto outcome = carry(group, 5, message(bytes, 1), bytes);
    EXPECT_TRUE(is_message(outcome, bytes, 1)) << bytes;
  }
}

TEST_P(EveryTransport, TellsHowMuchCameIntoALargerBuffer) {
  RankGroup group(GetParam(), 2);
  auto outcome = carry(group, 5, message(100, 1), 5000);
  EXPECT_TRUE(is_message(outcome, 100, 1));
  EXPECT_EQ(outcome->payload_bytes_max(), 5000U);
}

TEST_P(EveryTransport, ConnectsEveryPair) {
  for (const int rank_count : {1, 2, 3, 4}) {
    RankGroup group(GetParam(), rank_count);
    group.run([&](Rank self) {
      std::vector<Pending> sends;
      std::vector<std::pair<Rank, Pending>> receives;
      for (Rank peer{0}; peer.value < rank_count; ++peer.value) {
        if (peer == self) continue;
        const auto seed = static_cast<std::uint32_t>(10 * self.value + peer.value);
        sends.push_back(group.at(self).send(peer, 1, message(50, seed)));
        receives.emplace_back(peer, group.at(self).recv(peer, 1, Buffer(50)));
      }
      for (auto& [peer, receive] : receives) {
        auto outcome = receive.wait(soon(), "a message");
        EXPECT_TRUE(
            is_message(outcome, 50, static_cast<std::uint32_t>(10 * peer.value + self.value)));
      }
      for (auto& send : sends) EXPECT_TRUE(send.wait(soon(), "the peer").ok());
    });
  }
}

TEST_P(EveryTransport, MatchesTagsInAnyOrder) {
  RankGroup group(GetParam(), 2);
  constexpr std::uint32_t kCount = 8;
  std::vector<Pending> sends;
  for (std::uint32_t tag = 0; tag < kCount; ++tag) {
    sends.push_back(group.at(kRank0).send(kRank1, tag, message(100'000, tag)));
  }
  for (std::uint32_t tag = kCount; tag-- > 0;) {
    auto outcome = group.at(kRank1).recv(kRank0, tag, Buffer(100'000)).wait(soon(), "a message");
    EXPECT_TRUE(is_message(outcome, 100'000, tag)) << tag;
  }
  for (auto& send : sends) EXPECT_TRUE(send.wait(soon(), "rank 1").ok());
}

TEST_P(EveryTransport, KeepsTheOrderWithinATag) {
  RankGroup group(GetParam(), 2);
  constexpr std::uint32_t kCount = 50;
  const auto size_of = [](std::uint32_t i) { return std::size_t{i % 7} * 5000; };
  std::vector<Pending> sends;
  std::vector<Pending> receives;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    if (i % 2 == 0) receives.push_back(group.at(kRank1).recv(kRank0, 3, Buffer(30'000)));
    sends.push_back(group.at(kRank0).send(kRank1, 3, message(size_of(i), i)));
    if (i % 2 == 1) receives.push_back(group.at(kRank1).recv(kRank0, 3, Buffer(30'000)));
  }
  for (std::uint32_t i = 0; i < kCount; ++i) {
    auto outcome = receives[i].wait(soon(), "a message");
    EXPECT_TRUE(is_message(outcome, size_of(i), i)) << i;
    EXPECT_TRUE(sends[i].wait(soon(), "rank 1").ok());
  }
}

TEST_P(EveryTransport, MovesBothDirectionsAtOnce) {
  RankGroup group(GetParam(), 2);
  group.run([&](Rank self) {
    const Rank peer{1 - self.value};
    for (std::uint32_t round = 0; round < 4; ++round) {
      auto send = group.at(self).send(peer, 9, message(2 * kMiB, round));
      auto outcome = group.at(self).recv(peer, 9, Buffer(2 * kMiB)).wait(soon(), "a message");
      EXPECT_TRUE(is_message(outcome, 2 * kMiB, round));
      EXPECT_TRUE(send.wait(soon(), "the peer").ok());
    }
  });
}

// Small and large messages alternate; some transports write them on different threads.
TEST_P(EveryTransport, KeepsTheOrderOfEachThreadThatSends) {
  RankGroup group(GetParam(), 2);
  constexpr Tag kThreads = 3;
  constexpr std::uint32_t kCount = 120;
  const auto size_of = [](std::uint32_t i) { return i % 5 == 4 ? 100'000 : std::size_t{i % 7}; };
  const auto send_all = [&](Rank from, Tag tag) {
    for (std::uint32_t i = 0; i < kCount; ++i) {
      auto sent = group.at(from).send(Rank{1 - from.value}, tag, message(size_of(i), i));
      if (i % 3 != 0) continue;
      EXPECT_TRUE(sent.wait(soon(), "the peer").ok());
    }
  };
  group.run([&](Rank self) {
    std::vector<std::jthread> threads;
    for (Tag tag = 0; tag < kThreads; ++tag) threads.emplace_back(send_all, self, tag);
    for (std::uint32_t i = 0; i < kCount; ++i) {
      for (Tag tag = 0; tag < kThreads; ++tag) {
        auto outcome =
            group.at(self).recv(Rank{1 - self.value}, tag, Buffer(100'000)).wait(soon(), "it");
        EXPECT_TRUE(is_message(outcome, size_of(i), i)) << tag << " " << i;
      }
    }
  });
}

TEST_P(EveryTransport, RefusesAMessageLongerThanItsRoom) {
  RankGroup group(GetParam(), 2);
  for (const std::size_t bytes : {std::size_t{101}, 2 * kMiB}) {
    const auto outcome = carry(group, 5, message(bytes, 1), 100);
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(outcome.error().what, HasSubstr("from rank 0 is too long"));
  }
  auto next = carry(group, 6, message(10, 2), 10);  // later messages still arrive
  EXPECT_TRUE(is_message(next, 10, 2));
}

TEST_P(EveryTransport, EndsWaitsWhenThePeerLeaves) {
  RankGroup group(GetParam(), 3);
  auto first = group.at(kRank0).recv(kRank1, 1, Buffer(10));
  auto second = group.at(kRank0).recv(kRank1, 2, Buffer(kMiB));
  auto other = group.at(kRank0).recv(Rank{2}, 1, Buffer(10));
  group.destroy(kRank1);
  expect_lost(first.wait(soon(), "a message"), kRank1);
  expect_lost(second.wait(soon(), "a message"), kRank1);
  expect_lost(group.at(kRank0).recv(kRank1, 3, Buffer(10)).wait(soon(), "a message"), kRank1);
  expect_lost(group.at(kRank0).send(kRank1, 3, message(10, 1)).wait(soon(), "rank 1"), kRank1);
  EXPECT_FALSE(other.done());  // rank 2 is still connected
  auto send = group.at(Rank{2}).send(kRank0, 1, message(10, 4));
  auto outcome = other.wait(soon(), "a message");
  EXPECT_TRUE(is_message(outcome, 10, 4));
}

TEST_P(EveryTransport, EndsALargeSendWhenThePeerLeaves) {
  RankGroup group(GetParam(), 2);
  auto send = group.at(kRank0).send(kRank1, 1, message(64 * kMiB, 1));
  group.destroy(kRank1);
  const auto outcome = send.wait(soon(), "rank 1");
  if (!outcome.ok()) expect_lost(outcome, kRank1);  // it may have been buffered before
}

TEST_P(EveryTransport, EndsEverySendOfManyThreadsWhenThePeerLeaves) {
  RankGroup group(GetParam(), 2);
  std::atomic<int> lost = 0;
  std::vector<std::jthread> threads;
  for (Tag tag = 0; tag < 3; ++tag) {
    threads.emplace_back([&, tag] {
      const Deadline until = soon();
      for (std::uint32_t i = 0; !until.passed(); ++i) {
        const std::size_t bytes = i % 8 == 7 ? 50'000 : 10;
        const auto outcome =
            group.at(kRank0).send(kRank1, tag, message(bytes, i)).wait(soon(), "rank 1");
        if (outcome.ok()) continue;
        expect_lost(outcome, kRank1);
        ++lost;
        return;
      }
    });
  }
  auto receive = group.at(kRank0).recv(kRank1, 9, Buffer(10));
  (void)group.at(kRank1).recv(kRank0, 0, Buffer(10)).wait(soon(), "the first message");
  group.destroy(kRank1);
  expect_lost(receive.wait(soon(), "a message"), kRank1);
  threads.clear();
  EXPECT_EQ(lost, 3);
}

// More than the sender may send without a posted receive, so that the first sends stall.
TEST_P(EveryTransport, APeerThatTakesNothingHoldsUpNoOther) {
  RankGroup group(GetParam(), 3);
  constexpr std::uint32_t kCount = 6;
  constexpr std::size_t kBytes = 48 * kMiB;
  std::vector<Pending> sends;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    sends.push_back(group.at(kRank0).send(kRank1, i, message(kBytes, i)));
  }
  for (const Tag tag : {Tag{1}, kBulkTag | 2}) {
    auto received = group.at(Rank{2}).recv(kRank0, tag, Buffer(kMiB));
    sends.push_back(group.at(kRank0).send(Rank{2}, tag, message(kMiB, 7)));
    auto outcome = received.wait(soon(), "what was sent to rank 2");
    EXPECT_TRUE(is_message(outcome, kMiB, 7));
  }
  for (std::uint32_t i = 0; i < kCount; ++i) {
    auto outcome = group.at(kRank1).recv(kRank0, i, Buffer(kBytes)).wait(soon(), "a message");
    EXPECT_TRUE(is_message(outcome, kBytes, i));
  }
  for (auto& send : sends) EXPECT_TRUE(send.wait(soon(), "its receiver").ok());
}

TEST_P(EveryTransport, AnswersItsOwnWaitersWhenItIsDestroyed) {
  RankGroup group(GetParam(), 2);
  auto receive = group.at(kRank0).recv(kRank1, 1, Buffer(10));
  group.destroy(kRank0);
  const auto outcome = receive.wait(soon(), "a message");
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().cause, "this rank disconnected");
}

TEST_P(EveryTransport, NamesWhatDidNotComeInTime) {
  RankGroup group(GetParam(), 2);
  auto receive = group.at(kRank0).recv(kRank1, 1, Buffer(10));
  const auto outcome = receive.wait(Deadline::after_s(0.02), "the vote");
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, ErrorCode::kPeer);
  EXPECT_THAT(outcome.error().what, HasSubstr("waiting for the vote: timed out"));
}

INSTANTIATE_TEST_SUITE_P(Kinds,
                         EveryTransport,
                         testing::ValuesIn(all_transport_kinds()),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace motley
