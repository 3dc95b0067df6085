#include "pipeline/collectives/shared_reduce_buffers.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/collectives/allreduce_id.h"
#include "tests/support/rank_group.h"

namespace motley {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr SharedReduceBuffers::Layout kLayout{.slots = 3, .slot_values = 100};
constexpr Rank kRank0{0};
constexpr Rank kRank1{1};

const FrameId kOffer = FrameId::memory(FrameKind::kReplicaAllreduce, ChunkId{4}, 3);
const FrameId kAnswer = FrameId::memory_ack(FrameKind::kReplicaAllreduce, ChunkId{4}, 3);

FrameLink link_of(RankGroup& group, Rank self) {
  return {group.at(self), self, /*epoch=*/1, /*plan_hash=*/2};
}

Result<SharedReduceBuffers> agree(FrameLink& link,
                                  std::vector<Rank> neighbours,
                                  double stall_timeout_s = 5) {
  return SharedReduceBuffers::agree(link, neighbours, {.chunk = ChunkId{4}}, 3, kLayout,
                                    stall_timeout_s);
}

class SharedReduceBuffersOver : public testing::TestWithParam<std::string> {
 protected:
  // "mixed" has ranks 0 and 1 on one machine and rank 2 on another one.
  [[nodiscard]] static bool share_memory(Rank one, Rank other) {
    const std::string& kind = GetParam();
    return kind == "inproc" || kind == "local" ||
           (kind == "mixed" && one.value < 2 && other.value < 2);
  }
};

TEST_P(SharedReduceBuffersOver, AreReadByRanksThatShareMemory) {
  RankGroup group(GetParam(), 3);
  group.run([&](Rank self) {
    FrameLink link = link_of(group, self);
    std::vector<Rank> others{Rank{0}, Rank{1}, Rank{2}};
    std::erase(others, self);
    const auto buffers = agree(link, others);
    ASSERT_TRUE(buffers.ok()) << describe(buffers.error());
    for (const Rank other : others) {
      const bool shares = share_memory(self, other);
      EXPECT_EQ(link.shares_memory(other), shares);
      EXPECT_EQ(buffers->reads(other), shares);
      EXPECT_EQ(buffers->is_read_by(other), shares);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Kinds,
                         SharedReduceBuffersOver,
                         testing::ValuesIn(all_transport_kinds()),
                         [](const auto& kind) { return "Over_" + kind.param; });

TEST(SharedReduceBuffers, ContainWhatTheirOwnersWrite) {
  RankGroup group("local", 2);
  std::vector<std::unique_ptr<SharedReduceBuffers>> buffers(2);
  group.run([&](Rank self) {
    FrameLink link = link_of(group, self);
    auto agreed = agree(link, {self == kRank0 ? kRank1 : kRank0});
    ASSERT_TRUE(agreed.ok()) << describe(agreed.error());
    buffers[self.index()] = std::make_unique<SharedReduceBuffers>(std::move(agreed).value());
  });
  for (std::size_t slot = 0; slot < kLayout.slots; ++slot) {
    ASSERT_EQ(buffers[0]->own(slot).size(), kLayout.slot_values);
    std::ranges::fill(buffers[0]->own(slot), static_cast<float>(slot + 1));
  }
  for (std::size_t slot = 0; slot < kLayout.slots; ++slot) {
    EXPECT_THAT(buffers[1]->of(kRank0, slot), Each(static_cast<float>(slot + 1)));
    EXPECT_THAT(buffers[0]->of(kRank1, slot), Each(0.0F));
  }
  buffers[0].reset();
  EXPECT_EQ(buffers[1]->of(kRank0, 0)[0], 1.0F) << "memory lives as long as one mapping";
}

// The messages of a peer: its offer, and its answer to the other's (1: opened, 0: not opened).
struct PeerMessages {
  std::vector<std::byte> offer;
  std::uint8_t answer = 0;
};

// While it exists this process cannot open a file, and thus cannot create shared memory.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit none{0, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  }

  ~NoMoreFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }

  NoMoreFiles(const NoMoreFiles&) = delete;
  NoMoreFiles& operator=(const NoMoreFiles&) = delete;

 private:
  rlimit before_{};
};

// Rank 0 negotiates with an emulated rank 1 that sends these messages.
Result<SharedReduceBuffers> agree_with_peer(const PeerMessages& peer, bool can_make_memory = true) {
  RankGroup group("local", 2);
  FrameLink theirs = link_of(group, kRank1);
  auto offer = theirs.send(kRank0, kOffer, buffer_with(peer.offer));
  auto answer =
      theirs.send(kRank0, kAnswer, buffer_with(std::as_bytes(std::span(&peer.answer, 1))));
  auto received_offer = theirs.recv(kRank0, kOffer, Buffer(100));
  auto received_answer = theirs.recv(kRank0, kAnswer, Buffer(100));
  FrameLink ours = link_of(group, kRank0);
  std::optional<NoMoreFiles> no_more_files;
  if (!can_make_memory) no_more_files.emplace();
  return agree(ours, {kRank1});
}

std::vector<std::byte> bytes_of(const MemoryOffer& offer) {
  const auto bytes = std::as_bytes(std::span(&offer, 1));
  return {bytes.begin(), bytes.end()};
}

TEST(SharedReduceBuffers, AreAgreedOnSeparatelyForEachDirection) {
  const auto neither = agree_with_peer({bytes_of({}), 0});
  ASSERT_TRUE(neither.ok()) << describe(neither.error());
  EXPECT_FALSE(neither->reads(kRank1));
  EXPECT_FALSE(neither->is_read_by(kRank1));

  const auto reading = agree_with_peer({bytes_of({}), 1});
  ASSERT_TRUE(reading.ok()) << describe(reading.error());
  EXPECT_FALSE(reading->reads(kRank1)) << "it offered nothing";
  EXPECT_TRUE(reading->is_read_by(kRank1));

  const auto memory = SharedMemory::make(kLayout.slots * kLayout.slot_values * sizeof(float));
  ASSERT_TRUE(memory.ok());
  const auto offered = agree_with_peer({bytes_of(memory->offer()), 0});
  ASSERT_TRUE(offered.ok()) << describe(offered.error());
  EXPECT_TRUE(offered->reads(kRank1));
  EXPECT_FALSE(offered->is_read_by(kRank1)) << "it did not open what was offered";
}

TEST(SharedReduceBuffers, AreNotReadIfTheirSizeDiffers) {
  const auto memory = SharedMemory::make(kLayout.slots * kLayout.slot_values * sizeof(float) - 4);
  ASSERT_TRUE(memory.ok());
  const auto buffers = agree_with_peer({bytes_of(memory->offer()), 1});
  ASSERT_TRUE(buffers.ok()) << describe(buffers.error());
  EXPECT_FALSE(buffers->reads(kRank1));
}

TEST(SharedReduceBuffers, AreNotReadByAPeerThatClaimsToWithoutAnOffer) {
  const auto buffers = agree_with_peer({bytes_of({}), 1}, /*can_make_memory=*/false);
  ASSERT_TRUE(buffers.ok()) << describe(buffers.error());
  EXPECT_FALSE(buffers->is_read_by(kRank1));
}

TEST(SharedReduceBuffers, RejectAMalformedOffer) {
  const auto buffers = agree_with_peer({std::vector<std::byte>(15), 0});
  ASSERT_FALSE(buffers.ok());
  EXPECT_EQ(buffers.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(buffers.error().what, HasSubstr("malformed offer of shared memory from rank 1"));
}

TEST(SharedReduceBuffers, RejectAMalformedAnswer) {
  const auto buffers = agree_with_peer({bytes_of({}), 2});
  ASSERT_FALSE(buffers.ok());
  EXPECT_EQ(buffers.error().code, ErrorCode::kCorrupt);
}

TEST(SharedReduceBuffers, EndTheWaitForASilentNeighbour) {
  RankGroup group("local", 2);
  FrameLink link = link_of(group, kRank0);
  const auto buffers = agree(link, {kRank1}, 0.2);
  ASSERT_FALSE(buffers.ok());
  EXPECT_EQ(buffers.error().code, ErrorCode::kPeer);
}

}  // namespace
}  // namespace motley
