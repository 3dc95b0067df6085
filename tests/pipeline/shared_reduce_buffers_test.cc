#include "pipeline/reduce/shared_reduce_buffers.h"

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

#include "pipeline/reduce/allreduce_id.h"
#include "tests/support/rank_group.h"

namespace motley {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr SharedReduceBuffers::Form kForm{.slots = 3, .slot_values = 100};
constexpr Rank kRank0{0};
constexpr Rank kRank1{1};

const FrameId kOffer = FrameId::memory(ChunkId{4}, /*is_tied=*/false, 3);
const FrameId kAnswer = FrameId::memory_answer(ChunkId{4}, /*is_tied=*/false, 3);

FrameLink link_of(RankGroup& group, Rank self) {
  return {group.at(self), self, /*epoch=*/1, /*plan_hash=*/2};
}

Result<SharedReduceBuffers> agree(FrameLink& link,
                                  std::vector<Rank> neighbours,
                                  double patience_s = 5) {
  return SharedReduceBuffers::agree(link, neighbours, {.chunk = ChunkId{4}}, 3, kForm, patience_s);
}

class LocalBoardsOver : public testing::TestWithParam<std::string> {
 protected:
  // "mixed" has ranks 0 and 1 on one machine and rank 2 on another one.
  [[nodiscard]] static bool share_memory(Rank one, Rank other) {
    const std::string& kind = GetParam();
    return kind == "inproc" || kind == "local" ||
           (kind == "mixed" && one.value < 2 && other.value < 2);
  }
};

TEST_P(LocalBoardsOver, AreReadByWhomTheTransportNames) {
  RankGroup group(GetParam(), 3);
  group.run([&](Rank self) {
    FrameLink link = link_of(group, self);
    std::vector<Rank> others{Rank{0}, Rank{1}, Rank{2}};
    std::erase(others, self);
    const auto boards = agree(link, others);
    ASSERT_TRUE(boards.ok()) << describe(boards.error());
    for (const Rank other : others) {
      const bool shares = share_memory(self, other);
      EXPECT_EQ(link.shares_memory(other), shares);
      EXPECT_EQ(boards->reads(other), shares);
      EXPECT_EQ(boards->is_read_by(other), shares);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Kinds,
                         LocalBoardsOver,
                         testing::ValuesIn(all_transport_kinds()),
                         [](const auto& kind) { return "Over_" + kind.param; });

TEST(SharedReduceBuffers, ShowWhatTheirOwnersWrite) {
  RankGroup group("local", 2);
  std::vector<std::unique_ptr<SharedReduceBuffers>> boards(2);
  group.run([&](Rank self) {
    FrameLink link = link_of(group, self);
    auto agreed = agree(link, {self == kRank0 ? kRank1 : kRank0});
    ASSERT_TRUE(agreed.ok()) << describe(agreed.error());
    boards[self.index()] = std::make_unique<SharedReduceBuffers>(std::move(agreed).value());
  });
  for (std::size_t slot = 0; slot < kForm.slots; ++slot) {
    ASSERT_EQ(boards[0]->own(slot).size(), kForm.slot_values);
    std::ranges::fill(boards[0]->own(slot), static_cast<float>(slot + 1));
  }
  for (std::size_t slot = 0; slot < kForm.slots; ++slot) {
    EXPECT_THAT(boards[1]->of(kRank0, slot), Each(static_cast<float>(slot + 1)));
    EXPECT_THAT(boards[0]->of(kRank1, slot), Each(0.0F));
  }
  boards[0].reset();
  EXPECT_EQ(boards[1]->of(kRank0, 0)[0], 1.0F) << "it is there as long as somebody has it";
}

// What a rank answers that offers `offer` and says of the other's board that it was opened, or not.
struct Played {
  std::vector<std::byte> offer;
  std::uint8_t verdict = 0;
};

// While it lives this process can open no file, and so make no memory.
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

// Rank 0 agrees with a rank 1 that is played.
Result<SharedReduceBuffers> agreed_with(const Played& played, bool can_make_memory = true) {
  RankGroup group("local", 2);
  FrameLink theirs = link_of(group, kRank1);
  auto offer = theirs.send(kRank0, kOffer, buffer_with(played.offer));
  auto verdict =
      theirs.send(kRank0, kAnswer, buffer_with(std::as_bytes(std::span(&played.verdict, 1))));
  auto heard_offer = theirs.recv(kRank0, kOffer, Buffer(100));
  auto heard_verdict = theirs.recv(kRank0, kAnswer, Buffer(100));
  FrameLink ours = link_of(group, kRank0);
  std::optional<NoMoreFiles> no_more_files;
  if (!can_make_memory) no_more_files.emplace();
  return agree(ours, {kRank1});
}

std::vector<std::byte> bytes_of(const MemoryOffer& offer) {
  const auto bytes = std::as_bytes(std::span(&offer, 1));
  return {bytes.begin(), bytes.end()};
}

TEST(SharedReduceBuffers, AreAgreedOnInEachDirectionByItself) {
  const auto neither = agreed_with({bytes_of({}), 0});
  ASSERT_TRUE(neither.ok()) << describe(neither.error());
  EXPECT_FALSE(neither->reads(kRank1));
  EXPECT_FALSE(neither->is_read_by(kRank1));

  const auto reading = agreed_with({bytes_of({}), 1});
  ASSERT_TRUE(reading.ok()) << describe(reading.error());
  EXPECT_FALSE(reading->reads(kRank1)) << "it offered nothing";
  EXPECT_TRUE(reading->is_read_by(kRank1));

  const auto memory = SharedMemory::make(kForm.slots * kForm.slot_values * sizeof(float));
  ASSERT_TRUE(memory.ok());
  const auto shown = agreed_with({bytes_of(memory->offer()), 0});
  ASSERT_TRUE(shown.ok()) << describe(shown.error());
  EXPECT_TRUE(shown->reads(kRank1));
  EXPECT_FALSE(shown->is_read_by(kRank1)) << "it did not open what was offered";
}

TEST(SharedReduceBuffers, AreNotReadWhereTheyHaveAnotherSize) {
  const auto memory = SharedMemory::make(kForm.slots * kForm.slot_values * sizeof(float) - 4);
  ASSERT_TRUE(memory.ok());
  const auto boards = agreed_with({bytes_of(memory->offer()), 1});
  ASSERT_TRUE(boards.ok()) << describe(boards.error());
  EXPECT_FALSE(boards->reads(kRank1));
}

TEST(SharedReduceBuffers, AreNotReadByWhoSaysSoWhereNoneWasOffered) {
  const auto boards = agreed_with({bytes_of({}), 1}, /*can_make_memory=*/false);
  ASSERT_TRUE(boards.ok()) << describe(boards.error());
  EXPECT_FALSE(boards->is_read_by(kRank1));
}

TEST(SharedReduceBuffers, RefuseAnOfferThatIsNone) {
  const auto boards = agreed_with({std::vector<std::byte>(15), 0});
  ASSERT_FALSE(boards.ok());
  EXPECT_EQ(boards.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(boards.error().what, HasSubstr("what rank 1 says about the memory that it shares"));
}

TEST(SharedReduceBuffers, RefuseAnAnswerThatIsNone) {
  const auto boards = agreed_with({bytes_of({}), 2});
  ASSERT_FALSE(boards.ok());
  EXPECT_EQ(boards.error().code, ErrorCode::kCorrupt);
}

TEST(SharedReduceBuffers, EndTheWaitForANeighbourThatSaysNothing) {
  RankGroup group("local", 2);
  FrameLink link = link_of(group, kRank0);
  const auto boards = agree(link, {kRank1}, 0.2);
  ASSERT_FALSE(boards.ok());
  EXPECT_EQ(boards.error().code, ErrorCode::kPeer);
}

}  // namespace
}  // namespace motley
