#include "profiling/allreduce_bench.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/rank_group.h"

namespace motley {
namespace {

constexpr int kRuns = 3;
constexpr std::size_t kValues = 20'000;
const RanksByMachine kTwoByTwo = {{Rank{0}, Rank{1}}, {Rank{2}, Rank{3}}};
const RanksByMachine kThree = {{Rank{0}}, {Rank{1}}, {Rank{2}}};

// [Rank]
std::vector<AllreduceSample> measure(const RanksByMachine& machines,
                                     const CompressorOptions& compression) {
  const AllreducePlan plan(machines, kValues, 2000);
  RankGroup group("inproc", machines == kThree ? 3 : 4);
  std::vector<AllreduceSample> samples(static_cast<std::size_t>(group.size()));
  group.run([&](Rank self) {
    FrameLink link(group.at(self), self, /*epoch=*/1, /*plan_hash=*/0);
    const auto sample =
        measure_allreduce(link, self, plan, compression, {.window = 3, .stall_timeout = 10}, kRuns);
    ASSERT_TRUE(sample.ok()) << describe(sample.error());
    samples[self.index()] = *sample;
  });
  return samples;
}

double bytes_out(const std::vector<AllreduceSample>& samples) {
  double sum = 0;
  for (const AllreduceSample& sample : samples) sum += sample.bytes_out;
  return sum;
}

TEST(AllreduceBench, IsExactAndSendsTheLeastWithoutCompression) {
  for (const auto& machines : {kTwoByTwo, kThree}) {
    const auto samples = measure(machines, {});
    const auto count = static_cast<double>(machines.size());
    EXPECT_EQ(bytes_out(samples), 2 * kValues * sizeof(float) * (count - 1));
    for (const AllreduceSample& sample : samples) {
      EXPECT_EQ(sample.runs_s.size(), std::size_t{kRuns});
      EXPECT_EQ(sample.largest_error, 0);
      EXPECT_EQ(sample.lost_error, 0);
    }
  }
}

TEST(AllreduceBench, FindsThatFeedbackOnlyDelaysWhatTopkLeavesOut) {
  for (const auto& machines : {kTwoByTwo, kThree}) {
    const auto samples = measure(machines, {.chain = "topk(0.05)|fp16"});
    for (const AllreduceSample& sample : samples) {
      EXPECT_GT(sample.largest_error, 0.5);
      EXPECT_LT(sample.lost_error, 1e-4);
    }
    EXPECT_LT(bytes_out(samples), 0.1 * bytes_out(measure(machines, {})));
  }
}

TEST(AllreduceBench, FindsWhatIsLostWithoutFeedback) {
  const auto samples = measure(kTwoByTwo, {.chain = "topk(0.05)|fp16", .error_feedback = false});
  for (const AllreduceSample& sample : samples) EXPECT_GT(sample.lost_error, 1);
}

TEST(AllreduceBench, ShowsTheRoundingOfInt8) {
  for (const AllreduceSample& sample : measure(kThree, {.chain = "int8"})) {
    EXPECT_GT(sample.largest_error, 0);
    EXPECT_LT(sample.largest_error, 0.1);
    EXPECT_LT(sample.lost_error, 1e-4);
  }
}

}  // namespace
}  // namespace motley
