#include "comm/frames/frame_link.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rapidcheck.h>

#include "support/rank_group.h"

namespace motley {
namespace {

using testing::HasSubstr;

constexpr Rank kRank0{0};
constexpr Rank kRank1{1};
constexpr std::uint32_t kEpoch = 4;
constexpr std::uint64_t kPlan = 0xABCDEF;
constexpr FrameId kFrame{FrameKind::kActivation, ChunkId{0}, MicroId{3}, 7};

std::string text_of(const Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.payload().data()), buffer.payload().size()};
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

Buffer payload(const std::string& text) {
  return buffer_with(bytes_of(text));
}

// Records the tag of each operation, and sends nothing.
class TagRecorder final : public Transport {
 public:
  [[nodiscard]] std::string address() const override { return ""; }

  Result<void> connect(const std::vector<std::string>&, Deadline) override { return {}; }

  Pending send(Rank, Tag tag, Buffer) override {
    last = tag;
    return {};
  }

  Pending recv(Rank, Tag tag, Buffer) override {
    last = tag;
    return {};
  }

  Tag last = 0;
};

TEST(FrameLink, ValuesOfMicroBatchesAndVotesGoBeforeSumsAndFiles) {
  TagRecorder transport;
  FrameLink link(transport, kRank0, kEpoch, kPlan);
  const auto is_bulk = [&](const FrameId& id) {
    (void)link.send(kRank1, id, payload("x"));
    const Tag sent = transport.last;
    (void)link.recv(kRank1, id, Buffer(1));
    EXPECT_EQ(transport.last, sent) << to_words(id);
    EXPECT_LT(sent, kTagsEnd);
    return (sent & kBulkTag) != 0;
  };
  for (const FrameKind kind : {FrameKind::kActivation, FrameKind::kGradient, FrameKind::kTargets}) {
    EXPECT_FALSE(is_bulk({kind, ChunkId{(1 << 16) - 1}, MicroId{(1 << 24) - 1}, 7}));
  }
  EXPECT_FALSE(is_bulk(FrameId::vote(kRank0, 7)));
  EXPECT_FALSE(is_bulk(FrameId::all_votes(7)));
  EXPECT_FALSE(is_bulk(FrameId::memory(FrameKind::kReplicaAllreduce, ChunkId{2}, 7)));
  EXPECT_FALSE(is_bulk(FrameId::memory_ack(FrameKind::kReplicaAllreduce, ChunkId{2}, 7)));
  EXPECT_TRUE(is_bulk(FrameId::allreduce(FrameKind::kReplicaAllreduce, ChunkId{2}, {5, 1}, 7)));
  EXPECT_TRUE(is_bulk(FrameId::allreduce(FrameKind::kTiedGradient, ChunkId{0}, {5, 1}, 7)));
  EXPECT_TRUE(is_bulk(FrameId::file_part(3, 9, 7)));
  EXPECT_TRUE(is_bulk(FrameId::file_ack(3, 9, 7)));
}

// Rank 1 receives kFrame with the default link; the test determines what rank 0 sends.
class FrameLinkTest : public testing::Test {
 protected:
  Result<Buffer> receive() {
    FrameLink link(group_.at(kRank1), kRank1, kEpoch, kPlan);
    return link.recv(kRank0, kFrame, Buffer(100)).wait(soon());
  }

  // Sends "hello" from a link with other parameters.
  Result<Buffer> receive_from(Rank self,
                              std::uint32_t epoch,
                              std::uint64_t plan,
                              const FrameId& id) {
    FrameLink link(group_.at(kRank0), self, epoch, plan);
    auto sent = link.send(kRank1, id, payload("hello"));
    return receive();
  }

  static void expect_mismatch(const Result<Buffer>& outcome, const std::string& cause) {
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(outcome.error().what,
                HasSubstr("activation of chunk 0, micro-batch 3, step 7 from rank 0"));
    EXPECT_THAT(outcome.error().cause, HasSubstr(cause));
  }

  RankGroup group_{"inproc", 2};
};

TEST_F(FrameLinkTest, DeliversAPayload) {
  const auto outcome = receive_from(kRank0, kEpoch, kPlan, kFrame);
  ASSERT_TRUE(outcome.ok()) << describe(outcome.error());
  EXPECT_EQ(text_of(*outcome), "hello");
}

TEST_F(FrameLinkTest, DeliversAnEmptyPayload) {
  FrameLink link(group_.at(kRank0), kRank0, kEpoch, kPlan);
  auto sent = link.send(kRank1, kFrame, Buffer(0));
  EXPECT_EQ(text_of(*receive()), "");
  EXPECT_EQ(link.wire_bytes(), kFrameHeaderBytes);
  EXPECT_EQ(link.sent_bytes(), (std::vector<std::uint64_t>{0, kFrameHeaderBytes}));
}

TEST_F(FrameLinkTest, NamesWhatDiffers) {
  const FrameId other_step(FrameKind::kActivation, ChunkId{0}, MicroId{3}, 8);
  expect_mismatch(receive_from(kRank0, 5, kPlan, kFrame), "epoch is 5");
  expect_mismatch(receive_from(kRank0, kEpoch, 0xFF, kFrame), "plan is 00000000000000ff");
  expect_mismatch(receive_from(Rank{6}, kEpoch, kPlan, kFrame), "rank 6");
  expect_mismatch(receive_from(kRank0, kEpoch, kPlan, other_step), "step 8");
}

TEST_F(FrameLinkTest, NamesEachKindByWhatItCarries) {
  constexpr MicroId kMicro{3};
  constexpr BucketPhase kPart{.bucket = 5, .phase = 2};
  EXPECT_EQ(to_words(FrameId(FrameKind::kGradient, ChunkId{2}, kMicro, 7)),
            "gradient of chunk 2, micro-batch 3, step 7");
  EXPECT_EQ(to_words(FrameId(FrameKind::kTargets, ChunkId{0}, kMicro, 7)),
            "targets of micro-batch 3, step 7");
  EXPECT_EQ(to_words(FrameId::allreduce(FrameKind::kReplicaAllreduce, ChunkId{2}, kPart, 7)),
            "all-reduce of the gradients of chunk 2, bucket 5, phase 2, step 7");
  EXPECT_EQ(to_words(FrameId::allreduce(FrameKind::kTiedGradient, ChunkId{0}, kPart, 7)),
            "all-reduce of the tied gradient, bucket 5, phase 2, step 7");
  EXPECT_EQ(to_words(FrameId::vote(Rank{4}, 7)), "vote of rank 4, step 7");
  EXPECT_EQ(to_words(FrameId::all_votes(7)), "all votes, step 7");
  EXPECT_EQ(to_words(FrameId::file_part(3, 12, 7)), "part 12 of file 3, step 7");
  EXPECT_EQ(to_words(FrameId::file_ack(3, 12, 7)), "answer to part 12 of file 3, step 7");
  EXPECT_EQ(to_words(FrameId::memory(FrameKind::kReplicaAllreduce, ChunkId{2}, 7)),
            "offer of shared memory for the all-reduce of the gradients of chunk 2, step 7");
  EXPECT_EQ(
      to_words(FrameId::memory_ack(FrameKind::kReplicaAllreduce, ChunkId{2}, 7)),
      "answer to offer of shared memory for the all-reduce of the gradients of chunk 2, step 7");
  EXPECT_EQ(to_words(FrameId::memory(FrameKind::kTiedGradient, ChunkId{0}, 7)),
            "offer of shared memory for the all-reduce of the tied gradient, step 7");
  EXPECT_EQ(to_words(FrameId::memory_ack(FrameKind::kTiedGradient, ChunkId{0}, 7)),
            "answer to offer of shared memory for the all-reduce of the tied gradient, step 7");
}

// The fields of docs/formats/frame.md.
TEST_F(FrameLinkTest, PutsRanksAndBucketsWhereTheFormatSays) {
  const FrameId sum =
      FrameId::allreduce(FrameKind::kReplicaAllreduce, ChunkId{2}, {.bucket = 5, .phase = 3}, 7);
  EXPECT_EQ(sum, FrameId::from_header(static_cast<FrameKind>(6), 2, 23, 7));
  const FrameId tied =
      FrameId::allreduce(FrameKind::kTiedGradient, ChunkId{0}, {.bucket = 1, .phase = 0}, 7);
  EXPECT_EQ(tied, FrameId::from_header(static_cast<FrameKind>(4), 0, 4, 7));
  const FrameId pseudo =
      FrameId::allreduce(FrameKind::kPseudoGradient, ChunkId{2}, {.bucket = 5, .phase = 3}, 7);
  EXPECT_EQ(pseudo, FrameId::from_header(static_cast<FrameKind>(9), 2, 23, 7));
  EXPECT_EQ(to_words(pseudo),
            "all-reduce of the pseudo-gradients of chunk 2, bucket 5, phase 3, step 7");
  const FrameId tied_pseudo =
      FrameId::allreduce(FrameKind::kTiedPseudoGradient, ChunkId{0}, {.bucket = 1, .phase = 0}, 7);
  EXPECT_EQ(tied_pseudo, FrameId::from_header(static_cast<FrameKind>(10), 0, 4, 7));
  EXPECT_EQ(FrameId::vote(Rank{9}, 7), FrameId::from_header(static_cast<FrameKind>(5), 9, 0, 7));
  EXPECT_EQ(FrameId::all_votes(7), FrameId::from_header(static_cast<FrameKind>(5), 0, 1, 7));
}

TEST_F(FrameLinkTest, PutsPartsOfFilesWhereTheFormatSays) {
  constexpr auto kFilePart = static_cast<FrameKind>(7);
  EXPECT_EQ(FrameId::file_part(65'535, 5, 7), FrameId::from_header(kFilePart, 65'535, 10, 7));
  EXPECT_EQ(FrameId::file_ack(2, 5, 7), FrameId::from_header(kFilePart, 2, 11, 7));
  // The numbers wrap around.
  EXPECT_EQ(FrameId::file_ack(2, (1 << 23) - 1, 7),
            FrameId::from_header(kFilePart, 2, (1 << 24) - 1, 7));
  EXPECT_EQ(FrameId::file_part(2, 3 * std::int64_t{1 << 23} + 1, 7), FrameId::file_part(2, 1, 7));
}

TEST_F(FrameLinkTest, PutsOffersOfMemoryWhereTheFormatSays) {
  constexpr auto kMemory = static_cast<FrameKind>(8);
  constexpr ChunkId kChunk{2};
  constexpr FrameKind kReplicas = FrameKind::kReplicaAllreduce;
  EXPECT_EQ(FrameId::memory(kReplicas, kChunk, 7), FrameId::from_header(kMemory, 2, 12, 7));
  EXPECT_EQ(FrameId::memory_ack(kReplicas, kChunk, 7), FrameId::from_header(kMemory, 2, 13, 7));
  constexpr FrameKind kTied = FrameKind::kTiedPseudoGradient;
  EXPECT_EQ(FrameId::memory(kTied, ChunkId{0}, 7), FrameId::from_header(kMemory, 0, 20, 7));
  EXPECT_EQ(FrameId::memory_ack(kTied, ChunkId{0}, 7), FrameId::from_header(kMemory, 0, 21, 7));
}

TEST_F(FrameLinkTest, CountsWhatAFrameSaysIsInMemory) {
  FrameLink to(group_.at(kRank0), kRank0, kEpoch, kPlan);
  FrameLink from(group_.at(kRank1), kRank1, kEpoch, kPlan);
  auto sent = to.send(kRank1, kFrame, Buffer(0), 1000);
  ASSERT_TRUE(from.recv(kRank0, kFrame, Buffer(0), 1000).wait(soon()).ok());
  EXPECT_EQ(to.wire_bytes(), kFrameHeaderBytes + 1000);
  EXPECT_EQ(from.moved_bytes(), kFrameHeaderBytes + 1000);

  const FrameId offer = FrameId::memory(FrameKind::kReplicaAllreduce, ChunkId{0}, 7);
  auto offered = to.send(kRank1, offer, Buffer(0));
  ASSERT_TRUE(from.recv(kRank0, offer, Buffer(0)).wait(soon()).ok());
  EXPECT_EQ(to.wire_bytes(), kFrameHeaderBytes + 1000) << "it is not of the training";
}

TEST_F(FrameLinkTest, SaysWhatDidNotComeAndFromWhom) {
  FrameLink link(group_.at(kRank1), kRank1, kEpoch, kPlan);
  const auto outcome = link.recv(kRank0, kFrame, Buffer(100)).wait(Deadline::after_s(0.5));
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code, ErrorCode::kPeer);
  EXPECT_EQ(outcome.error().what,
            "waiting for activation of chunk 0, micro-batch 3, step 7 from rank 0: timed out after "
            "0.5 s");
  EXPECT_NE(outcome.error().remedy, "");
}

TEST_F(FrameLinkTest, KeepsKindsChunksAndMicroBatchesApart) {
  EXPECT_TRUE(rc::check("frames with another kind, chunk or micro-batch do not meet", [&] {
    const auto id = [] {
      return FrameId::from_header(static_cast<FrameKind>(*rc::gen::inRange(1, 9)),
                                  *rc::gen::inRange(0, 1 << 16), *rc::gen::inRange(0, 1 << 24), 1);
    };
    const FrameId sent = id();
    const FrameId awaited = id();
    FrameLink voter_rank(group_.at(kRank0), kRank0, kEpoch, kPlan);
    FrameLink receiver(group_.at(kRank1), kRank1, kEpoch, kPlan);
    auto send = voter_rank.send(kRank1, sent, payload("x"));
    auto receive = receiver.recv(kRank0, awaited, Buffer(1));
    RC_ASSERT(receive.done() == (sent == awaited));
    if (sent == awaited) return;
    RC_ASSERT(receiver.recv(kRank0, sent, Buffer(1)).wait(soon()).ok());
    auto drain = voter_rank.send(kRank1, awaited, payload("x"));
    RC_ASSERT(receive.wait(soon()).ok());
  }));
}

TEST_F(FrameLinkTest, DetectsEveryFlippedBit) {
  FrameLink link(group_.at(kRank0), kRank0, kEpoch, kPlan);
  auto sent = link.send(kRank1, kFrame, payload("hello"));
  auto good = receive();
  ASSERT_TRUE(good.ok());
  // The frame of these tests, and its tag.
  constexpr Tag kTag = Tag{1} << 40 | 3;
  for (std::size_t bit = 0; bit < 8 * good->message().size(); ++bit) {
    Buffer damaged = payload("hello");
    std::memcpy(damaged.message().data(), good->message().data(), good->message().size());
    damaged.message()[bit / 8] ^= std::byte{1} << (bit % 8);
    auto pending = group_.at(kRank0).send(kRank1, kTag, std::move(damaged));
    const auto outcome = receive();
    ASSERT_FALSE(outcome.ok()) << bit;
    EXPECT_EQ(outcome.error().code, ErrorCode::kCorrupt);
  }
}

TEST_F(FrameLinkTest, DetectsACutOrExtendedFrame) {
  constexpr Tag kTag = Tag{1} << 40 | 3;
  FrameLink link(group_.at(kRank0), kRank0, kEpoch, kPlan);
  auto sent = link.send(kRank1, kFrame, payload("hello"));
  auto good = receive();
  ASSERT_TRUE(good.ok());
  for (const std::size_t bytes : {0U, 4U, 6U}) {
    Buffer cut(8);
    std::memcpy(cut.message_space().data(), good->message().data(), good->message().size());
    cut.set_payload_bytes(bytes);
    auto pending = group_.at(kRank0).send(kRank1, kTag, std::move(cut));
    expect_mismatch(receive(), "declares 5 bytes");
  }
}

class AllGatherSmall : public testing::TestWithParam<std::string> {};

TEST_P(AllGatherSmall, GivesEveryRankEveryPayload) {
  for (const int rank_count : {1, 2, 3, 4}) {
    RankGroup group(GetParam(), rank_count);
    group.run([&](Rank self) {
      FrameLink link(group.at(self), self, kEpoch, kPlan);
      for (std::int64_t step = 0; step < 20; ++step) {
        const std::string mine(static_cast<std::size_t>(self.value), static_cast<char>(step));
        const auto all = all_gather_small(link, self, rank_count, step, bytes_of(mine), 8, soon());
        ASSERT_TRUE(all.ok()) << describe(all.error());
        ASSERT_EQ(all->size(), static_cast<std::size_t>(rank_count));
        for (std::size_t rank = 0; rank < all->size(); ++rank) {
          EXPECT_EQ((*all)[rank], std::vector<std::byte>(rank, static_cast<std::byte>(step)));
        }
      }
      // No rank leaves before all have the last result.
      EXPECT_TRUE(all_gather_small(link, self, rank_count, 20, {}, 8, soon()).ok());
    });
  }
}

TEST_P(AllGatherSmall, NamesTheRankThatIsMissing) {
  RankGroup group(GetParam(), 3);
  group.run([&](Rank self) {
    if (self.value == 2) return;
    FrameLink link(group.at(self), self, kEpoch, kPlan);
    const auto all = all_gather_small(link, self, 3, 9, bytes_of("me"), 8, Deadline::after_s(0.3));
    ASSERT_FALSE(all.ok());
    EXPECT_THAT(all.error().what, HasSubstr("step 9"));
    EXPECT_THAT(all.error().what, HasSubstr(self == kRank0 ? "rank 2" : "rank 0"));
  });
}

INSTANTIATE_TEST_SUITE_P(Kinds,
                         AllGatherSmall,
                         testing::ValuesIn(all_transport_kinds()),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace motley
