// What comes after a launch that ended early.
#include "cluster/recover/decide.h"

#include <vector>

#include <gmock/gmock.h>

#include "tests/support/property.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<Member> kAllAnswer = {{"desk", ""}, {"box", ""}};

Setback lost(double at_s, bool has_saved = false) {
  return {.at_s = at_s, .code = ErrorCode::kPeer, .has_trained = true, .has_saved = has_saved};
}

TEST(Decide, GoesOnAfterALoss) {
  const std::vector<Setback> setbacks = {lost(100)};
  const Decision decision = decide(100, kAllAnswer, setbacks, {});
  EXPECT_EQ(decision.move, NextMove::kGoOn);
  EXPECT_EQ(decision.restart, 1);
  EXPECT_EQ(decision.wait_s, 0);
  EXPECT_THAT(decision.without, IsEmpty());
}

TEST(Decide, LeavesOutWhoDoesNotAnswer) {
  const std::vector<Member> members = {{"desk", ""}, {"box", "ssh: timed out"}, {"attic", ""}};
  const std::vector<Setback> setbacks = {lost(100)};
  EXPECT_THAT(decide(108, members, setbacks, {}).without, ElementsAre("box"));
}

// What was waited for answers is waited no second time.
TEST(Decide, WaitsLongerEachTimeInARow) {
  std::vector<Setback> setbacks = {lost(100), lost(200)};
  EXPECT_EQ(decide(200, kAllAnswer, setbacks, {}).wait_s, 2);
  EXPECT_EQ(decide(201.5, kAllAnswer, setbacks, {}).wait_s, 0.5);
  EXPECT_EQ(decide(230, kAllAnswer, setbacks, {}).wait_s, 0);
  setbacks.push_back(lost(300));
  EXPECT_EQ(decide(300, kAllAnswer, setbacks, {}).wait_s, 8);
  setbacks.insert(setbacks.end(), 5, lost(400));
  EXPECT_EQ(decide(400, kAllAnswer, setbacks, {.restarts = 10}).wait_s, 60);
}

TEST(Decide, EndsAfterThreeRestartsInARow) {
  const std::vector<Setback> setbacks(4, lost(100));
  const Decision decision = decide(100, kAllAnswer, setbacks, {});
  EXPECT_EQ(decision.move, NextMove::kEnd);
  EXPECT_THAT(decision.reason, HasSubstr("3 times without reaching a new checkpoint"));
}

TEST(Decide, CountsAnewAfterACheckpoint) {
  const std::vector<Setback> setbacks = {lost(1), lost(2), lost(3), lost(4, true)};
  EXPECT_EQ(decide(4, kAllAnswer, setbacks, {}).restart, 1);
}

TEST(Decide, EndsWhereItWasToldTo) {
  const std::vector<Setback> setbacks = {lost(1)};
  EXPECT_EQ(decide(1, kAllAnswer, setbacks, {.restarts = 0}).move, NextMove::kEnd);
}

TEST(Decide, EndsWhereTheSameWouldHappenAgain) {
  for (const ErrorCode code :
       {ErrorCode::kConfig, ErrorCode::kUnauthorised, ErrorCode::kInfeasible, ErrorCode::kCorrupt,
        ErrorCode::kData, ErrorCode::kDiverged, ErrorCode::kInterrupted, ErrorCode::kTerminated}) {
    const std::vector<Setback> setbacks = {{.code = code, .has_trained = true}};
    EXPECT_EQ(decide(0, kAllAnswer, setbacks, {}).move, NextMove::kEnd);
  }
  std::vector<Setback> internal = {{.code = ErrorCode::kInternal, .has_trained = false}};
  EXPECT_EQ(decide(0, kAllAnswer, internal, {}).move, NextMove::kEnd);
  internal.front().has_trained = true;
  EXPECT_EQ(decide(0, kAllAnswer, internal, {}).move, NextMove::kGoOn);
}

TEST(Decide, AsksAgainWhereNobodyAnswers) {
  const std::vector<Member> silent = {{"desk", "no route"}, {"box", "no route"}};
  const std::vector<Setback> setbacks = {lost(100)};
  const Decision decision = decide(200, silent, setbacks, {});
  EXPECT_EQ(decision.move, NextMove::kAskAgain);
  EXPECT_EQ(decision.wait_s, 5);
  EXPECT_EQ(decide(401, silent, setbacks, {}).move, NextMove::kEnd);
}

// Whatever happens: no more than `restarts` in a row without a checkpoint, and after
// the first at once, else later than the setback by no more than the longest wait.
RC_GTEST_PROP(Decide, NeverGoesOnForEver, ()) {
  const auto saved = *rc::gen::container<std::vector<bool>>(rc::gen::arbitrary<bool>());
  const RecoveryRules rules{.restarts = *rc::gen::inRange(0, 6)};
  std::vector<Setback> setbacks;
  int row = 0;
  for (const bool has_saved : saved) {
    setbacks.push_back(lost(static_cast<double>(setbacks.size()), has_saved));
    const Decision decision = decide(setbacks.back().at_s, kAllAnswer, setbacks, rules);
    row = has_saved ? 1 : row + 1;
    RC_ASSERT((decision.move == NextMove::kGoOn) == (row <= rules.restarts));
    if (decision.move == NextMove::kEnd) return;
    RC_ASSERT(decision.restart == row);
    RC_ASSERT((decision.wait_s > 0) == (row > 1) && decision.wait_s <= rules.longest_wait_s);
  }
}

}  // namespace
}  // namespace motley
