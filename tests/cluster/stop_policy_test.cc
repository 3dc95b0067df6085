#include "cluster/launch/stop_policy.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

using StopAction = StopPolicy::StopAction;

const Error kFirst{ErrorCode::kInterrupted, "interrupted", "", ""};
const Error kSecond{ErrorCode::kTerminated, "terminated", "", ""};

TEST(StopPolicy, TheFirstLetsWorkersFinishAndTheNextEndsThem) {
  StopPolicy wishes;
  EXPECT_FALSE(wishes.finished_by());
  EXPECT_EQ(wishes.take(kFirst, /*can_finish=*/true, 10), StopAction::kFinish);
  EXPECT_EQ(wishes.take(kSecond, true, 12), StopAction::kEndAtOnce);
  ASSERT_TRUE(wishes.finished_by());
  EXPECT_EQ(wishes.finished_by()->code, ErrorCode::kInterrupted);
}

TEST(StopPolicy, OneMomentIsOneWish) {
  StopPolicy wishes;
  EXPECT_EQ(wishes.take(kFirst, true, 10), StopAction::kFinish);
  EXPECT_EQ(wishes.take(kSecond, true, 10.1), StopAction::kKnown);
}

TEST(StopPolicy, EndsAtOnceWhereNothingCanBeFinished) {
  StopPolicy wishes;
  EXPECT_EQ(wishes.take(kFirst, /*can_finish=*/false, 10), StopAction::kEndAtOnce);
  EXPECT_FALSE(wishes.finished_by());
}

}  // namespace
}  // namespace motley
