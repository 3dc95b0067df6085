#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "pipeline/execute/executor.h"
#include "tests/pipeline/line_pipeline.h"

namespace motley {
namespace {

using testing::HasSubstr;

constexpr Rank kRank0{0};
constexpr Rank kRank1{1};
constexpr Rank kRank2{2};

void expect_error(const LinePipeline::Outcome& outcome, ErrorCode code, const std::string& what) {
  ASSERT_TRUE(outcome.has_value());
  ASSERT_FALSE(outcome->ok());
  EXPECT_EQ(outcome->error().code, code) << describe(outcome->error());
  EXPECT_THAT(outcome->error().what, HasSubstr(what));
}

// The executors of a LinePipeline have a timeout of one second; in a chain of three the timeouts
// may follow each other.
class ExecutorFaults : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_LT(now_s() - start_s_, 5);
    for (Rank rank{0}; rank.value < 3; ++rank.value) EXPECT_FALSE(pipeline_.stage(rank).stepped());
  }

  const double start_s_ = now_s();
  LinePipeline pipeline_{line_plan({0, 1, 2})};
};

TEST_F(ExecutorFaults, ALostPeerEndsTheStepOnEveryRank) {
  pipeline_.lose(kRank1);
  const auto outcomes = pipeline_.train();
  expect_error(outcomes[0], ErrorCode::kPeer, "rank 1");
  expect_error(outcomes[2], ErrorCode::kPeer, "rank 1");
}

TEST_F(ExecutorFaults, ASilentPeerEndsTheStepAfterTheTimeout) {
  pipeline_.silence(kRank2);
  const auto outcomes = pipeline_.train();
  expect_error(outcomes[0], ErrorCode::kPeer, "rank 1");
  expect_error(outcomes[1], ErrorCode::kPeer, "rank 2");
  EXPECT_GE(now_s() - start_s_, 1);
}

TEST_F(ExecutorFaults, AMessageOfAnotherLengthIsNeverReadByADevice) {
  pipeline_.stage(kRank1).encode_itself();
  pipeline_.stage(kRank1).expect_fewer_bytes();
  const auto outcomes = pipeline_.train();
  expect_error(outcomes[1], ErrorCode::kCorrupt, "none message of 20 bytes");
  EXPECT_FALSE(outcomes[0]->ok());
}

TEST_F(ExecutorFaults, AFrameOfAnotherPlanIsNeverComputedWith) {
  pipeline_.give_another_plan(kRank0);
  const auto outcomes = pipeline_.train();
  expect_error(outcomes[1], ErrorCode::kCorrupt, "activation of chunk 0, micro-batch 0");
  EXPECT_THAT(outcomes[1]->error().cause, HasSubstr("plan"));
  EXPECT_FALSE(outcomes[0]->ok());
  EXPECT_FALSE(outcomes[2]->ok());
}

TEST_F(ExecutorFaults, TargetsOfAnotherConfigurationAreNeverComputedWith) {
  pipeline_.stage(kRank2).expect_targets(kLineFloats + 1);
  const auto outcomes = pipeline_.train();
  expect_error(outcomes[2], ErrorCode::kCorrupt, "targets of micro-batch 0");
}

TEST_F(ExecutorFaults, AMalformedVoteStopsEveryRankBeforeTheStep) {
  pipeline_.stage(kRank1).cut_votes_to(3);
  for (const auto& outcome : pipeline_.train()) {
    expect_error(outcome, ErrorCode::kCorrupt, "a short vote");
  }
}

TEST(ExecutorCodec, RefusesAnUnknownName) {
  Plan plan = line_plan({0});
  plan.chunks[0].codec = "magic";
  LinePipeline pipeline(plan);
  expect_error(pipeline.train()[0], ErrorCode::kConfig, "magic");
}

}  // namespace
}  // namespace motley
