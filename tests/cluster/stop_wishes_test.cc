#include "cluster/launch/stop_wishes.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

using Wish = StopWishes::Wish;

const Error kFirst{ErrorCode::kInterrupted, "interrupted", "", ""};
const Error kSecond{ErrorCode::kTerminated, "terminated", "", ""};

TEST(StopWishes, TheFirstLetsWorkersFinishAndTheNextEndsThem) {
  StopWishes wishes;
  EXPECT_FALSE(wishes.finished_by());
  EXPECT_EQ(wishes.take(kFirst, /*can_finish=*/true, 10), Wish::kFinish);
  EXPECT_EQ(wishes.take(kSecond, true, 12), Wish::kEndAtOnce);
  ASSERT_TRUE(wishes.finished_by());
  EXPECT_EQ(wishes.finished_by()->code, ErrorCode::kInterrupted);
}

TEST(StopWishes, OneMomentIsOneWish) {
  StopWishes wishes;
  EXPECT_EQ(wishes.take(kFirst, true, 10), Wish::kFinish);
  EXPECT_EQ(wishes.take(kSecond, true, 10.1), Wish::kKnown);
}

TEST(StopWishes, EndsAtOnceWhereNothingCanBeFinished) {
  StopWishes wishes;
  EXPECT_EQ(wishes.take(kFirst, /*can_finish=*/false, 10), Wish::kEndAtOnce);
  EXPECT_FALSE(wishes.finished_by());
}

}  // namespace
}  // namespace motley
