#include "cluster/launch/failure.h"

#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley {
namespace {

using testing::HasSubstr;
using testing::Not;

Failure reported(ErrorCode code) {
  const Error error{code, "something", "", ""};
  return {failure_kind(error), error};
}

Failure death() {
  return {FailureKind::kCertain, {ErrorCode::kPeer, "was killed", "", ""}};
}

TEST(FirstCause, IsTheDeathThoughPeersComplainEarlier) {
  EXPECT_EQ(
      first_cause(std::vector{reported(ErrorCode::kPeer), reported(ErrorCode::kInternal), death()}),
      2U);
}

TEST(FirstCause, IsTheOwnErrorThoughPeersComplainEarlier) {
  EXPECT_EQ(first_cause(std::vector{reported(ErrorCode::kPeer), reported(ErrorCode::kData)}), 1U);
}

TEST(FirstCause, IsTheOwnErrorWhenItsLossKillsAPeer) {
  EXPECT_EQ(first_cause(std::vector{reported(ErrorCode::kCorrupt), death()}), 0U);
}

TEST(FirstCause, IsTheFirstOfEqualKinds) {
  EXPECT_EQ(first_cause(std::vector{reported(ErrorCode::kPeer), reported(ErrorCode::kPeer)}), 0U);
}

TEST(DescribeActivity, SaysWhatTheWorkerSaidLast) {
  EXPECT_EQ(describe_activity({}), "before it was ready");
  EXPECT_EQ(describe_activity({.ready = true}), "before its first step");
  EXPECT_EQ(describe_activity({.ready = true, .step = 12}), "after step 12");
  EXPECT_EQ(describe_activity({.ready = true, .doing = "an evaluation"}),
            "while it did an evaluation");
  EXPECT_EQ(describe_activity({.ready = true, .step = 12, .doing = "forward of micro-batch 3"}),
            "while it did forward of micro-batch 3 of step 12");
}

TEST(DescribeDeath, NamesTheSignalTheStageAndItsWork) {
  const Error error = describe_death(
      "stage 1 (box)", {.signal = SIGKILL},
      {.ready = true, .step = 12, .doing = "forward of micro-batch 3"}, true, false, {});
  EXPECT_EQ(error.code, ErrorCode::kPeer);
  EXPECT_EQ(error.what,
            "stage 1 (box) was killed by signal 9 (Killed), while it did forward of micro-batch 3 "
            "of step 12");
  EXPECT_THAT(error.cause, HasSubstr("ran out of memory"));
  EXPECT_THAT(error.remedy, HasSubstr("dmesg"));
  EXPECT_THAT(error.remedy, Not(HasSubstr("run the command again"))) << "a run says how it goes on";
}

TEST(DescribeDeath, TellsOfNoStepsWhereNothingIsTrained) {
  const Activity measuring{.ready = true, .doing = "work between steps"};
  const Error error =
      describe_death("profile of box (cpu)", {.signal = SIGKILL}, measuring, false, false, {});
  EXPECT_EQ(error.what, "profile of box (cpu) was killed by signal 9 (Killed)");
  EXPECT_THAT(error.remedy, HasSubstr("run the command again"));
  EXPECT_EQ(describe_death("s", {.status = 3}, {}, false, false, {}).what,
            "s exited with status 3, before it was ready");
}

TEST(DescribeDeath, QuotesTheLastLinesOfAnExit) {
  const Error error = describe_death("stage 0", {.status = 3}, {}, true, false, {"one", "two"});
  EXPECT_EQ(error.what, "stage 0 exited with status 3, before it was ready");
  EXPECT_THAT(error.cause, HasSubstr("one | two"));
}

TEST(DescribeDeath, KnowsTheStatusesOfEnvAndSsh) {
  EXPECT_THAT(describe_death("s", {.status = 127}, {}, true, true, {}).remedy,
              HasSubstr("motley_dir"));
  EXPECT_THAT(describe_death("s", {.status = 126}, {}, true, false, {}).remedy,
              HasSubstr("permissions"));
  EXPECT_THAT(describe_death("s", {.status = 255}, {}, true, true, {}).remedy,
              HasSubstr("password"));
  EXPECT_THAT(describe_death("s", {.status = 255}, {}, true, false, {}).remedy, HasSubstr("log"));
}

}  // namespace
}  // namespace motley
