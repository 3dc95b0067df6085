// The supervisor's decision after a launch that ended early.
#include "cluster/supervisor/decide.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/support/property.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<Member> members(const std::vector<std::string>& answering,
                            const std::vector<std::string>& silent = {}) {
  std::vector<Member> all;
  for (const std::string& name : answering) all.push_back({.machine = name});
  for (const std::string& name : silent) all.push_back({.machine = name, .problem = "no route"});
  return all;
}

const std::vector<Member> kAllAnswer = members({"desk", "box"});
const std::vector<Member> kThreeAnswer = members({"attic", "box", "desk"});

FailedAttempt lost(double at_s, bool has_saved = false) {
  return {.at_s = at_s, .code = ErrorCode::kPeer, .has_trained = true, .has_saved = has_saved};
}

TEST(Decide, GoesOnAfterALoss) {
  const std::vector<FailedAttempt> failed_attempts = {lost(100)};
  const Decision decision = decide(100, kAllAnswer, failed_attempts, {});
  EXPECT_EQ(decision.next_action, NextAction::kRestart);
  EXPECT_EQ(decision.restart, 1);
  EXPECT_EQ(decision.wait_s, 0);
  EXPECT_THAT(decision.without, IsEmpty());
}

FailedAttempt by(const std::vector<std::string>& machines, bool cannot_connect = false) {
  FailedAttempt failed_attempt = lost(100);
  failed_attempt.fault = {.machines = machines, .cannot_connect = cannot_connect};
  return failed_attempt;
}

TEST(Decide, LeavesOutWhoDoesNotAnswer) {
  const std::vector<FailedAttempt> failed_attempts = {lost(100)};
  const Decision decision = decide(108, members({"attic", "desk"}, {"box"}), failed_attempts, {});
  EXPECT_THAT(decision.without, ElementsAre("box"));
  EXPECT_EQ(decision.restart, 1);
}

// Time that has passed while waiting for answers is not waited again.
TEST(Decide, WaitsLongerEachTimeInARow) {
  std::vector<FailedAttempt> failed_attempts = {lost(100), lost(200)};
  EXPECT_EQ(decide(200, kAllAnswer, failed_attempts, {}).wait_s, 2);
  EXPECT_EQ(decide(201.5, kAllAnswer, failed_attempts, {}).wait_s, 0.5);
  EXPECT_EQ(decide(230, kAllAnswer, failed_attempts, {}).wait_s, 0);
  failed_attempts.push_back(lost(300));
  EXPECT_EQ(decide(300, kAllAnswer, failed_attempts, {}).wait_s, 8);
  failed_attempts.insert(failed_attempts.end(), 5, lost(400));
  EXPECT_EQ(decide(400, kAllAnswer, failed_attempts, {.restarts = 10}).wait_s, 60);
}

TEST(Decide, EndsAfterThreeRestartsInARow) {
  const std::vector<FailedAttempt> failed_attempts(4, lost(100));
  const Decision decision = decide(100, kAllAnswer, failed_attempts, {});
  EXPECT_EQ(decision.next_action, NextAction::kEnd);
  EXPECT_THAT(decision.reason, HasSubstr("3 times without reaching a new checkpoint"));
}

TEST(Decide, CountsAnewAfterACheckpoint) {
  const std::vector<FailedAttempt> failed_attempts = {lost(1), lost(2), lost(3), lost(4, true)};
  EXPECT_EQ(decide(4, kAllAnswer, failed_attempts, {}).restart, 1);
}

TEST(Decide, EndsWhereItWasToldTo) {
  const std::vector<FailedAttempt> failed_attempts = {lost(1)};
  EXPECT_EQ(decide(1, kAllAnswer, failed_attempts, {.restarts = 0}).next_action, NextAction::kEnd);
}

TEST(Decide, EndsWhereTheSameWouldHappenAgain) {
  for (const ErrorCode code :
       {ErrorCode::kConfig, ErrorCode::kUnauthorised, ErrorCode::kInfeasible, ErrorCode::kCorrupt,
        ErrorCode::kData, ErrorCode::kDiverged, ErrorCode::kInterrupted, ErrorCode::kTerminated}) {
    const std::vector<FailedAttempt> failed_attempts = {{.code = code, .has_trained = true}};
    EXPECT_EQ(decide(0, kAllAnswer, failed_attempts, {}).next_action, NextAction::kEnd);
  }
  std::vector<FailedAttempt> internal = {{.code = ErrorCode::kInternal, .has_trained = false}};
  EXPECT_EQ(decide(0, kAllAnswer, internal, {}).next_action, NextAction::kEnd);
  internal.front().has_trained = true;
  EXPECT_EQ(decide(0, kAllAnswer, internal, {}).next_action, NextAction::kRestart);
}

TEST(Decide, AsksAgainWhereNobodyAnswers) {
  const std::vector<Member> silent = members({}, {"desk", "box"});
  const std::vector<FailedAttempt> failed_attempts = {lost(100)};
  const Decision decision = decide(200, silent, failed_attempts, {.query_interval_s = 3});
  EXPECT_EQ(decision.next_action, NextAction::kQueryAgain);
  EXPECT_EQ(decision.wait_s, 3);
  const Decision end = decide(401, silent, failed_attempts, {.longest_outage_s = 300});
  EXPECT_EQ(end.next_action, NextAction::kEnd);
  EXPECT_THAT(end.reason, HasSubstr("desk, box did not answer"));
}

// If two machines are lost at once, the cause is more likely this machine's network.
TEST(Decide, WaitsAWhileWhereOneOfThreeAnswers) {
  const std::vector<Member> alone = members({"desk"}, {"attic", "box"});
  const std::vector<FailedAttempt> failed_attempts = {lost(100)};
  EXPECT_TRUE(decide(108, alone, failed_attempts, {}).is_outage);
  const Decision later = decide(161, alone, failed_attempts, {.continue_alone_after_s = 60});
  EXPECT_EQ(later.next_action, NextAction::kRestart);
  EXPECT_THAT(later.without, ElementsAre("attic", "box"));
  EXPECT_EQ(decide(108, members({"box"}, {"desk"}), failed_attempts, {}).next_action,
            NextAction::kRestart);
}

TEST(Decide, AsksThoseAgainThatAreLateAfterAnOutage) {
  std::vector<FailedAttempt> failed_attempts = {lost(100)};
  failed_attempts.back().outage_at_s = 200;
  const std::vector<Member> two = members({"attic", "desk"}, {"box"});
  const Decision late = decide(205, two, failed_attempts, {.grace_s = 10});
  EXPECT_EQ(late.next_action, NextAction::kQueryAgain);
  EXPECT_FALSE(late.is_outage);
  EXPECT_THAT(decide(211, two, failed_attempts, {.grace_s = 10}).without, ElementsAre("box"));
}

TEST(Decide, WaitsForThoseWithoutWhomItCouldNotGoOn) {
  std::vector<FailedAttempt> failed_attempts = {lost(100)};
  failed_attempts.back().absent_machines = {"attic"};
  EXPECT_EQ(decide(300, members({"desk", "box"}, {"attic"}), failed_attempts, {}).next_action,
            NextAction::kQueryAgain);
  EXPECT_EQ(decide(300, kThreeAnswer, failed_attempts, {}).next_action, NextAction::kRestart);
}

TEST(Decide, DoesNotCountOutagesAndItsOwnAbsence) {
  FailedAttempt outage = lost(100);
  outage.outage_at_s = 50;
  FailedAttempt slept = lost(100);
  slept.fault.own_absence = true;
  std::vector<FailedAttempt> failed_attempts(6, outage);
  failed_attempts.insert(failed_attempts.end(), 6, slept);
  const Decision uncounted = decide(100, kThreeAnswer, failed_attempts, {});
  EXPECT_EQ(uncounted.next_action, NextAction::kRestart);
  EXPECT_EQ(uncounted.restart, 0);
  failed_attempts.push_back(lost(100));
  EXPECT_EQ(decide(100, kThreeAnswer, failed_attempts, {}).restart, 1);
}

TEST(Decide, WaitsBeforeTheThirdRestartInARowThatIsNotCounted) {
  FailedAttempt slept = lost(100);
  slept.fault.own_absence = true;
  const auto wait_s = [&](std::size_t times) {
    return decide(100, kThreeAnswer, std::vector(times, slept), {}).wait_s;
  };
  EXPECT_EQ(wait_s(1), 0);
  EXPECT_EQ(wait_s(2), 0);
  EXPECT_EQ(wait_s(3), 2);
  EXPECT_EQ(wait_s(4), 8);
  EXPECT_EQ(wait_s(9), 60);
}

TEST(Decide, WaitsWithoutLimitUnlessOneIsSet) {
  const std::vector<Member> silent = members({"desk"}, {"attic", "box"});
  std::vector<FailedAttempt> failed_attempts(50, lost(100));
  for (FailedAttempt& each : failed_attempts) {
    each.outage_at_s = 100;
    each.absent_machines = {"attic", "box"};
  }
  constexpr double kMonth_s = 30 * 86'400;
  EXPECT_EQ(decide(100 + kMonth_s, silent, failed_attempts, {}).next_action,
            NextAction::kQueryAgain);
  EXPECT_EQ(decide(100 + kMonth_s, kThreeAnswer, failed_attempts, {}).next_action,
            NextAction::kRestart);
  EXPECT_EQ(decide(200, silent, failed_attempts, {.longest_outage_s = 99}).next_action,
            NextAction::kEnd);
}

TEST(Decide, LeavesOutAMachineOnProbationAtItsFirstFailure) {
  std::vector<Member> all = kThreeAnswer;
  all[1].is_on_probation = true;
  EXPECT_EQ(decide(100, all, std::vector{by({"box"})}, {}).excluded, "box");
  EXPECT_EQ(decide(100, all, std::vector{by({"desk"})}, {}).excluded, "");
}

TEST(Exclusion, LastsTwiceAsLongEachTimeInARow) {
  EXPECT_EQ(exclusion_s(1), 300);
  EXPECT_EQ(exclusion_s(2), 600);
  EXPECT_EQ(exclusion_s(4), 2400);
  EXPECT_EQ(exclusion_s(1000), 12 * 3600);
}

TEST(Decide, LeavesOutAMachineThatFailsAloneTwice) {
  std::vector<FailedAttempt> failed_attempts = {by({"box"})};
  const Decision first = decide(100, kThreeAnswer, failed_attempts, {});
  EXPECT_EQ(first.next_action, NextAction::kRestart);
  EXPECT_EQ(first.restart, 0);
  EXPECT_THAT(first.without, IsEmpty());
  failed_attempts.push_back(by({"box"}));
  const Decision second = decide(100, kThreeAnswer, failed_attempts, {});
  EXPECT_EQ(second.excluded, "box");
  EXPECT_THAT(second.without, ElementsAre("box"));
  EXPECT_EQ(second.restart, 0);
  std::vector<Member> without_box = kThreeAnswer;
  without_box[1].is_excluded = true;
  failed_attempts.push_back(lost(200));
  const Decision third = decide(200, without_box, failed_attempts, {});
  EXPECT_EQ(third.restart, 1);
  EXPECT_THAT(third.without, ElementsAre("box"));
}

TEST(Decide, CountsForEachMachineAndAnewAfterACheckpoint) {
  EXPECT_EQ(decide(100, kThreeAnswer, std::vector{by({"box"}), by({"desk"})}, {}).excluded, "");
  std::vector<FailedAttempt> failed_attempts = {by({"box"}), by({"box"})};
  failed_attempts.back().has_saved = true;
  EXPECT_EQ(decide(100, kThreeAnswer, failed_attempts, {}).excluded, "");
}

// Needed: the others cannot hold the model, or there are no others.
TEST(Decide, CountsTheFailuresOfAMachineThatIsNeeded) {
  std::vector<Member> needed = kThreeAnswer;
  needed[1].is_needed = true;
  const std::vector<FailedAttempt> failed_attempts(3, by({"box"}));
  EXPECT_EQ(decide(100, needed, failed_attempts, {}).restart, 3);
  EXPECT_EQ(decide(100, needed, failed_attempts, {}).excluded, "");
  EXPECT_EQ(decide(100, members({"box"}), failed_attempts, {}).restart, 3);
  EXPECT_EQ(decide(100, members({"box"}), std::vector(4, by({"box"})), {}).next_action,
            NextAction::kEnd);
}

TEST(Decide, LeavesOutOneOfTwoThatCannotConnectAtOnce) {
  const std::vector<FailedAttempt> failed_attempts = {by({"attic", "box"}, true)};
  const Decision decision = decide(100, kThreeAnswer, failed_attempts, {});
  EXPECT_EQ(decision.excluded, "box");
  EXPECT_EQ(decision.restart, 0);
  std::vector<Member> needed = kThreeAnswer;
  needed[1].is_needed = true;
  EXPECT_EQ(decide(100, needed, failed_attempts, {}).excluded, "attic");
  needed[0].is_needed = true;
  EXPECT_EQ(decide(100, needed, failed_attempts, {}).next_action, NextAction::kEnd);
}

TEST(Decide, EndsANewRunWhoseMachinesCannotConnect) {
  std::vector<FailedAttempt> failed_attempts = {by({"box"}, true)};
  failed_attempts.back().is_of_new_run = true;
  EXPECT_EQ(decide(100, kThreeAnswer, failed_attempts, {}).next_action, NextAction::kEnd);
}

// Whichever machines fail, and however often, the run ends, unless its network fails.
RC_GTEST_PROP(Decide, NeverStartsForEverWithoutACheckpoint, ()) {
  std::vector<Member> all = kThreeAnswer;
  std::vector<FailedAttempt> failed_attempts;
  int without_outage = 0;
  for (;; RC_ASSERT(without_outage <= 40)) {
    FailedAttempt failed_attempt = lost(static_cast<double>(failed_attempts.size()));
    if (*rc::gen::arbitrary<bool>()) failed_attempt.outage_at_s = 0;
    without_outage += failed_attempt.outage_at_s ? 0 : 1;
    failed_attempt.fault.own_absence = *rc::gen::arbitrary<bool>();
    failed_attempt.fault.cannot_connect = *rc::gen::arbitrary<bool>();
    failed_attempt.fault.machines = *rc::gen::container<std::vector<std::string>>(
        rc::gen::element<std::string>("attic", "box", "desk"));
    failed_attempts.push_back(failed_attempt);
    const Decision decision = decide(failed_attempt.at_s, all, failed_attempts, {});
    if (decision.next_action == NextAction::kEnd) return;
    for (Member& member : all) {
      member.is_excluded = member.is_excluded || member.machine == decision.excluded;
    }
    const auto left = std::ranges::count(all, false, &Member::is_excluded);
    RC_ASSERT(left > 0);
  }
}

// In any case at most `restarts` restarts in a row without a checkpoint: the first at once, each
// other one after a delay of at most the longest wait.
RC_GTEST_PROP(Decide, NeverGoesOnForEver, ()) {
  const auto saved = *rc::gen::container<std::vector<bool>>(rc::gen::arbitrary<bool>());
  const RecoveryRules rules{.restarts = *rc::gen::inRange(0, 6)};
  std::vector<FailedAttempt> failed_attempts;
  int row = 0;
  for (const bool has_saved : saved) {
    failed_attempts.push_back(lost(static_cast<double>(failed_attempts.size()), has_saved));
    const Decision decision =
        decide(failed_attempts.back().at_s, kAllAnswer, failed_attempts, rules);
    row = has_saved ? 1 : row + 1;
    RC_ASSERT((decision.next_action == NextAction::kRestart) == (row <= rules.restarts));
    if (decision.next_action == NextAction::kEnd) return;
    RC_ASSERT(decision.restart == row);
    RC_ASSERT((decision.wait_s > 0) == (row > 1) && decision.wait_s <= rules.longest_wait_s);
  }
}

// Two machines at once are no single machine's failure, but they left after a saved step.
TEST(Decide, DoesNotCountMachinesThatLeaveByRequest) {
  const std::vector<Member> two_left = {{.machine = "desk"},
                                        {.machine = "box", .is_excluded = true},
                                        {.machine = "attic", .is_excluded = true}};
  std::vector<FailedAttempt> attempts = {{.code = ErrorCode::kPeer,
                                          .has_trained = true,
                                          .has_saved = true,
                                          .fault = {.machines = {"box", "attic"}}}};
  EXPECT_EQ(decide(1, two_left, attempts, {}).restart, 1);
  attempts.front().is_by_request = true;
  const Decision decision = decide(1, two_left, attempts, {});
  EXPECT_EQ(decision.next_action, NextAction::kRestart);
  EXPECT_EQ(decision.restart, 0);
  EXPECT_THAT(decision.without, testing::UnorderedElementsAre("box", "attic"));
}

}  // namespace
}  // namespace motley
