#include "cluster/launch/failure.h"

#include <fmt/format.h>
#include <signal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/transport/comm_errors.h"

namespace motley {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const WorkerIdentity kBox{.name = "stage 1 (box)", .machine = "box"};

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
  EXPECT_EQ(describe_activity({.ready = true, .current_action = "an evaluation"}),
            "during an evaluation");
  EXPECT_EQ(
      describe_activity({.ready = true, .step = 12, .current_action = "forward of micro-batch 3"}),
      "during forward of micro-batch 3 in step 12");
}

TEST(DescribeDeath, NamesTheSignalTheStageAndItsWork) {
  const Error error =
      describe_death(kBox, {.signal = SIGKILL},
                     {.ready = true, .step = 12, .current_action = "forward of micro-batch 3"}, {});
  EXPECT_EQ(error.code, ErrorCode::kPeer);
  EXPECT_EQ(
      error.what,
      "stage 1 (box) was killed by signal 9 (Killed), during forward of micro-batch 3 in step 12");
  EXPECT_THAT(error.cause, HasSubstr("ran out of memory"));
  EXPECT_THAT(error.remedy, HasSubstr("sudo dmesg"));
  EXPECT_THAT(error.remedy, Not(HasSubstr("run the command again"))) << "a run has its own hint";
}

TEST(DescribeDeath, TellsOfNoStepsWhereNothingIsTrained) {
  const WorkerActivity measuring{.ready = true, .current_action = "work between steps"};
  const Error error =
      describe_death({.name = "profile of box (cpu)", .machine = "box", .trains = false},
                     {.signal = SIGKILL}, measuring, {});
  EXPECT_EQ(error.what, "profile of box (cpu) was killed by signal 9 (Killed)");
  EXPECT_THAT(error.remedy, HasSubstr("run the command again"));
  EXPECT_EQ(
      describe_death({.name = "s", .machine = "box", .trains = false}, {.status = 3}, {}, {}).what,
      "s exited with status 3, before it was ready");
}

TEST(DescribeDeath, QuotesTheLastLinesOfAnExit) {
  const Error error =
      describe_death({.name = "stage 0", .machine = "box"}, {.status = 3}, {}, {"one", "two"});
  EXPECT_EQ(error.what, "stage 0 exited with status 3, before it was ready");
  EXPECT_THAT(error.cause, HasSubstr("one | two"));
}

TEST(DescribeDeath, KnowsTheStatusesOfEnv) {
  EXPECT_THAT(describe_death(kBox, {.status = 127}, {}, {}).remedy, HasSubstr("motley_dir"));
  EXPECT_THAT(describe_death(kBox, {.status = 126}, {}, {}).remedy, HasSubstr("permissions"));
  EXPECT_THAT(describe_death(kBox, {.status = 255}, {}, {}).remedy, HasSubstr("log"));
}

// ssh reports status 255 for a failed login, for a closed connection, and for a remote program
// that was killed.
TEST(DescribeDeath, TellsTheCausesOfStatus255OfSshByWhatWasSeen) {
  WorkerIdentity behind = kBox;
  behind.ssh = true;
  const WorkerActivity working{
      .ready = true, .step = 12, .current_action = "forward of micro-batch 3"};
  const auto death = [&](const std::vector<std::string>& lines) {
    return describe_death(behind, {.status = 255}, working, lines);
  };
  const Error killed = death({});
  EXPECT_THAT(killed.what, HasSubstr("stage 1 (box) was killed on machine box, during"));
  EXPECT_THAT(killed.remedy, AllOf(HasSubstr("sudo dmesg"), Not(HasSubstr("password"))));
  const Error cut = death({"Connection to box closed by remote host."});
  EXPECT_EQ(cut.what, "machine box was lost, during forward of micro-batch 3 in step 12");
  EXPECT_THAT(cut.cause, HasSubstr("closed by remote host"));
  EXPECT_THAT(cut.remedy, Not(HasSubstr("password")));
  behind.greeted = false;
  EXPECT_THAT(death({"root@box: Permission denied (publickey)."}).remedy, HasSubstr("password"));
  EXPECT_THAT(death({"ssh: connect to host box port 22: Connection refused"}).remedy,
              AllOf(HasSubstr("sshd"), Not(HasSubstr("password"))));
}

Failure lost(int witness, int rank) {
  return {FailureKind::kPeerLost,
          peer_lost(Rank{rank}, fmt::format("connection reset by rank {}", rank)), witness};
}

struct ThreeWorkers {
  std::vector<WorkerIdentity> workers = {{.name = "stage 0 (desk)", .machine = "desk"},
                                         {.name = "stage 1 (box)", .machine = "box"},
                                         {.name = "stage 2 (attic)", .machine = "attic"}};
  std::vector<WorkerActivity> activities = {
      {}, {.ready = true, .step = 3, .current_action = "forward of micro-batch 1"}, {}};

  [[nodiscard]] std::string what(const std::vector<Failure>& failures) const {
    const auto error = describe_loss(failures, workers, activities);
    return error ? error->error.what : "";
  }
};

TEST(DescribeLoss, NamesTheMachineAndNotTheSurvivorsThatNoticed) {
  const ThreeWorkers three;
  const std::string box =
      "machine box was lost, during forward of micro-batch 1 in step 3 on stage 1 (box)";
  EXPECT_EQ(three.what({lost(0, 1)}), box);
  // That attic lost desk adds nothing: desk ended because it lost box.
  EXPECT_EQ(three.what({lost(2, 0), lost(0, 1)}), box);
  const std::vector<Failure> failures = {lost(0, 1)};
  EXPECT_EQ(describe_loss(failures, three.workers, three.activities)->error.cause,
            "reported by stage 0 (desk): connection reset by stage 1 (box)");
}

TEST(DescribeLoss, NamesBothWhereTwoLostEachOtherAndAStageWhereTheMachineIsThere) {
  ThreeWorkers three;
  EXPECT_EQ(three.what({lost(0, 1), lost(1, 0)}),
            "stage 0 (desk) and stage 1 (box) lost their connection");
  three.workers[1].machine = "desk";
  EXPECT_THAT(three.what({lost(0, 1)}), testing::StartsWith("stage 1 (box) was lost, during"));
  EXPECT_EQ(three.what({{FailureKind::kPeerLost, {ErrorCode::kPeer, "cannot connect", "", ""}}}),
            "");
  // Nothing is concluded from an error text alone, or from a rank outside the group.
  EXPECT_EQ(three.what({{FailureKind::kPeerLost, {ErrorCode::kPeer, "rank 1 was lost", "", ""}}}),
            "");
  EXPECT_EQ(three.what({lost(0, 3)}), "");
}

TEST(WithNames, PutsStagesForRanksButLeavesListsAndStrangers) {
  const std::vector<WorkerIdentity> workers = {{.name = "stage 0 (a)"}, {.name = "stage 1 (b)"}};
  EXPECT_EQ(with_names("from rank 1: rank 0, and rank 7", workers),
            "from stage 1 (b): stage 0 (a), and rank 7");
  EXPECT_EQ(with_names("07 on rank 0, 1; rank", workers), "07 on rank 0, 1; rank");
}

}  // namespace
}  // namespace motley
