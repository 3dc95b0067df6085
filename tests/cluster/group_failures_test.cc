// How long the launcher waits for more specific reports after the first sign of a failure.
#include "cluster/launch/group_failures.h"

#include <chrono>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "comm/transport/comm_errors.h"

namespace motley {
namespace {

using std::chrono::milliseconds;

class GroupFailuresTest : public testing::Test {
 protected:
  GroupFailuresTest() {
    for (int i = 0; i < 2; ++i) {
      workers_.push_back(std::make_unique<Worker>(WorkerSpec{}, [](const std::string&) {}));
    }
  }

  static Failure rank_1_was_lost() {
    return {FailureKind::kPeerLost, peer_lost(Rank{1}, "connection reset"), 0};
  }

  std::vector<std::unique_ptr<Worker>> workers_;
  GroupFailures failures_{workers_};
};

TEST_F(GroupFailuresTest, NewsOfTheEndOfOneThatWasJustHeardMayComeForASecond) {
  const auto before = SteadyClock::now();
  workers_[1]->heard_at_s = now_s();
  failures_.add(rank_1_was_lost());
  EXPECT_GE(failures_.settle_deadline().time(), before + milliseconds(999));
}

TEST_F(GroupFailuresTest, OfOneThatWasSilentForLongNoneAreWaitedFor) {
  workers_[1]->heard_at_s = now_s() - 4;
  failures_.add(rank_1_was_lost());
  EXPECT_LE(failures_.settle_deadline().time(), SteadyClock::now() + milliseconds(300));
}

TEST_F(GroupFailuresTest, AnErrorThatNamesNobodyIsCheckedAgainstOthersFirst) {
  const auto before = SteadyClock::now();
  failures_.add({FailureKind::kUnclear, {ErrorCode::kInternal, "a library failed"}, 0});
  EXPECT_GE(failures_.settle_deadline().time(), before + milliseconds(299));
  EXPECT_FALSE(failures_.empty());
}

TEST_F(GroupFailuresTest, WhoeverIsWaitedForHasTimeToFindWhatItStandsIn) {
  const auto before = SteadyClock::now();
  workers_[1]->heard_at_s = now_s() - 4;
  failures_.add({FailureKind::kPeerLost, nothing_came("gradient of chunk 1 from rank 1", 2), 0});
  EXPECT_GE(failures_.settle_deadline().time(), before + milliseconds(1999));
  failures_.add({FailureKind::kUnclear, {ErrorCode::kInternal, "its device stands still"}, 1});
  EXPECT_EQ(failures_.first().error.what, "its device stands still");
}

TEST_F(GroupFailuresTest, ACertainCauseSettlesThem) {
  failures_.add(rank_1_was_lost());
  failures_.add({FailureKind::kCertain, {ErrorCode::kPeer, "stage 1 (box) was killed"}, 1});
  EXPECT_TRUE(failures_.are_settled());
}

}  // namespace
}  // namespace motley
