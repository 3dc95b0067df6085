#include "pipeline/sum_replicas.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/rank_group.h"

namespace motley {
namespace {

constexpr ReplicaSum kSum{.chunk = ChunkId{3}, .step = 7, .timeout_s = 1, .piece_floats_max = 2048};

// Values whose sum depends on the order of adding.
std::vector<float> values_of(Rank rank, std::size_t count) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) {
    const float large = rank.value == 1 ? 1e8F : rank.value == 2 ? -1e8F : 0.3F;
    values.push_back(large + static_cast<float>(i % 7));
  }
  return values;
}

struct Summed {
  std::vector<float> values;
  std::optional<Error> error;
};

// Each holder's outcome, [rank]; counts: how many values each of them brings.
std::vector<Summed> sum(RankGroup& group,
                        const std::vector<Rank>& holders,
                        const std::vector<std::size_t>& counts) {
  std::vector<Summed> summed(static_cast<std::size_t>(group.size()));
  group.run([&](Rank self) {
    if (std::ranges::find(holders, self) == holders.end()) return;
    FrameLink link(group.at(self), self, /*epoch=*/1, /*plan_hash=*/2);
    Summed& mine = summed[self.index()];
    mine.values = values_of(self, counts[self.index()]);
    ReplicaSum options = kSum;
    options.holders = holders;
    const auto waited = sum_over_replicas(link, self, options, mine.values);
    if (!waited.ok()) mine.error = waited.error();
  });
  return summed;
}

TEST(SumReplicas, AddsInTheOrderOfTheRanksOnAllOfThem) {
  const std::vector<Rank> holders = {Rank{0}, Rank{1}, Rank{2}};
  for (const std::size_t count : {0, 1, 2, 100, 3072, 10001}) {
    RankGroup group("inproc", 3);
    const auto summed = sum(group, holders, {count, count, count});
    std::vector<float> expected(count, 0.0F);
    for (const Rank rank : holders) {
      const std::vector<float> values = values_of(rank, count);
      for (std::size_t i = 0; i < count; ++i) expected[i] += values[i];
    }
    for (const Summed& each : summed) {
      EXPECT_FALSE(each.error) << describe(*each.error);
      EXPECT_EQ(each.values, expected) << count;
    }
  }
}

TEST(SumReplicas, LeavesOtherRanksAlone) {
  RankGroup group("inproc", 4);
  const auto summed = sum(group, {Rank{1}, Rank{3}}, {0, 5000, 0, 5000});
  EXPECT_FALSE(summed[1].error) << describe(*summed[1].error);
  EXPECT_EQ(summed[1].values, summed[3].values);
  EXPECT_EQ(summed[1].values[0], 1e8F + 0.3F);
}

TEST(SumReplicas, RefusesAnotherNumberOfValues) {
  RankGroup group("inproc", 2);
  const auto summed = sum(group, {Rank{0}, Rank{1}}, {100, 60});
  ASSERT_TRUE(summed[0].error || summed[1].error);
  const Error& error = summed[0].error ? *summed[0].error : *summed[1].error;
  EXPECT_EQ(error.code, ErrorCode::kCorrupt) << describe(error);
}

TEST(SumReplicas, EndsWhenAReplicaIsLost) {
  RankGroup group("inproc", 3);
  group.destroy(Rank{2});
  const std::vector<Rank> holders = {Rank{0}, Rank{1}, Rank{2}};
  group.run([&](Rank self) {
    if (self == Rank{2}) return;
    FrameLink link(group.at(self), self, 1, 2);
    std::vector<float> values = values_of(self, 100);
    ReplicaSum options = kSum;
    options.holders = holders;
    const auto waited = sum_over_replicas(link, self, options, values);
    ASSERT_FALSE(waited.ok());
    EXPECT_EQ(waited.error().code, ErrorCode::kPeer);
  });
}

}  // namespace
}  // namespace motley
