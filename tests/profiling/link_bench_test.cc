#include "profiling/link_bench.h"

#include <vector>

#include <gtest/gtest.h>

#include "tests/support/rank_group.h"

namespace motley {
namespace {

class LinkBench : public testing::TestWithParam<std::string> {};

TEST_P(LinkBench, MeasuresOneEndWhileTheOtherServes) {
  RankGroup group(GetParam(), 2);
  Result<LinkSample> link = Error{};
  Result<double> served = Error{};
  group.run([&](Rank rank) {
    if (rank.value == 0) {
      link = measure_link(group.at(rank), Rank{1}, 0.2);
    } else {
      served = serve_link(group.at(rank), Rank{0});
    }
  });
  ASSERT_TRUE(link.ok()) << describe(link.error());
  ASSERT_TRUE(served.ok()) << describe(served.error());
  EXPECT_GT(link->bandwidth_bytes_per_s, 0);
  EXPECT_GT(link->latency_s, 0);
  EXPECT_GE(link->jitter_p95_s, 0);
  EXPECT_GT(link->send_cpu_s_per_byte, 0);
  EXPECT_GT(*served, 0);
}

TEST_P(LinkBench, MeasuresBothEndsAtOnce) {
  RankGroup group(GetParam(), 2);
  // So slow that the smallest message is used, which takes 65.536 s in one direction alone.
  const LinkSample alone{.bandwidth_bytes_per_s = 1000, .latency_s = 0.5};
  std::vector<Result<BidirectionalSample>> both(2, Error{});
  group.run([&](Rank rank) {
    both[rank.index()] =
        measure_bidirectional(group.at(rank), Rank{1 - rank.value}, rank.value == 0, alone, 0.05);
  });
  for (const Result<BidirectionalSample>& end : both) {
    ASSERT_TRUE(end.ok()) << describe(end.error());
    EXPECT_NEAR(end->alone_s, 66.036, 1e-9);
    EXPECT_GT(end->together_s, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds,
                         LinkBench,
                         testing::ValuesIn(all_transport_kinds()),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace motley
