#include "pipeline/execute/unexpected_bytes.h"

#include <vector>

#include <gtest/gtest.h>

#include "comm/transport/transport.h"
#include "comm/transport/unexpected_message_quota.h"
#include "pipeline/schedule/schedules.h"

namespace motley {
namespace {

constexpr std::uint64_t kFrame = kFrameHeaderBytes + kUnexpectedMessageBytes;
constexpr std::uint64_t kVotes = 3 * (50 + 4) + kFrame;  // of three ranks

// Three ranks: two replicas of the first chunk, with two and one of the three micro-batches, and
// one of the last chunk.
Plan plan() {
  Plan plan;
  plan.ranks.resize(3);
  plan.chunks = {{0, 1, {{Rank{0}, 2}, {Rank{1}, 1}}, "none"}, {1, 1, {{Rank{2}, 3}}}};
  plan.micro_batches = 3;
  return plan;
}

std::uint64_t unexpected_bytes(const Plan& plan, Rank self, bool tied_across_ranks = false) {
  const auto schedule = make_schedule(plan, tied_across_ranks);
  EXPECT_TRUE(schedule.ok());
  const std::vector<BoundarySize> boundaries = {{100, 7}, {}};
  return unexpected_bytes_max(plan, *schedule, {boundaries, 10, 50}, self);
}

TEST(EarlyBytes, CountWhatOnePeerSendsInAStepTwice) {
  // The first rank sends activations and targets of two micro-batches.
  EXPECT_EQ(unexpected_bytes(plan(), Rank{2}),
            2 * (2 * (407 + kFrame) + 2 * (40 + kFrame) + kVotes));
}

TEST(EarlyBytes, CountExactBytesOfActivationsAlone) {
  Plan line = plan();
  line.chunks = {
      {0, 1, {{Rank{0}, 3}}, "none"}, {1, 1, {{Rank{1}, 3}}, "none"}, {2, 1, {{Rank{2}, 3}}}};
  EXPECT_EQ(unexpected_bytes(line, Rank{1}), 2 * (3 * (407 + kFrame) + kVotes));
  EXPECT_EQ(unexpected_bytes(line, Rank{0}), 2 * (3 * (400 + kFrame) + kVotes));
}

TEST(EarlyBytes, CountTheWindowOfASum) {
  Plan alone = plan();
  alone.chunks = {{0, 2, {{Rank{0}, 1}, {Rank{1}, 1}, {Rank{2}, 1}}, "none"}};
  constexpr std::uint64_t kWindowOfMemory = 12 * 4 * ((4 << 16) + kFrame);
  EXPECT_EQ(unexpected_bytes(alone, Rank{0}), 2 * (kWindowOfMemory + kVotes));
}

TEST(EarlyBytes, CountTheSumOfATiedParameter) {
  EXPECT_GT(unexpected_bytes(plan(), Rank{2}, /*tied_across_ranks=*/true),
            unexpected_bytes(plan(), Rank{2}) + (12 * 4 << 18));
}

TEST(EarlyBytes, GrowWithTheFramesAndTheirCodec) {
  Plan smaller = plan();
  smaller.chunks[0].codec = "fp16";
  EXPECT_LT(unexpected_bytes(smaller, Rank{2}), unexpected_bytes(plan(), Rank{2}));
}

}  // namespace
}  // namespace motley
