#include "measure/link_bench.h"

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

INSTANTIATE_TEST_SUITE_P(Kinds,
                         LinkBench,
                         testing::ValuesIn(all_transport_kinds()),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace motley
