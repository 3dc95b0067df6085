#include "cluster/launch/stop_policy.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

const Error kFirst{ErrorCode::kInterrupted, "interrupted", "", ""};
const Error kSecond{ErrorCode::kTerminated, "terminated", "", ""};

TEST(StopPolicy, FirstSignalFinishesAndNextTerminates) {
  StopPolicy policy;
  EXPECT_FALSE(policy.finished_by());
  EXPECT_EQ(policy.on_signal(kFirst, /*can_finish=*/true, 10), StopAction::kFinish);
  EXPECT_EQ(policy.on_signal(kSecond, true, 12), StopAction::kTerminate);
  ASSERT_TRUE(policy.finished_by());
  EXPECT_EQ(policy.finished_by()->code, ErrorCode::kInterrupted);
}

TEST(StopPolicy, IgnoresADuplicateSignal) {
  StopPolicy policy;
  EXPECT_EQ(policy.on_signal(kFirst, true, 10), StopAction::kFinish);
  EXPECT_EQ(policy.on_signal(kSecond, true, 10.1), StopAction::kIgnore);
}

TEST(StopPolicy, TerminatesIfNothingCanBeFinished) {
  StopPolicy policy;
  EXPECT_EQ(policy.on_signal(kFirst, /*can_finish=*/false, 10), StopAction::kTerminate);
  EXPECT_FALSE(policy.finished_by());
}

}  // namespace
}  // namespace motley
