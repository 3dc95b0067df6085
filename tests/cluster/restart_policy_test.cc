#include "cluster/supervisor/restart_policy.h"

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// "desk" and "box" run locally and always answer.
Cluster cluster_of_two() {
  Cluster cluster;
  for (const char* name : {"desk", "box"}) cluster.machines.push_back({.name = name});
  return cluster;
}

const std::filesystem::path kProgram;

FailedAttempt failure_of(const std::string& machine, bool cannot_connect) {
  return {.at_s = 1,
          .code = ErrorCode::kPeer,
          .fault = {.machines = {machine}, .cannot_connect = cannot_connect}};
}

TEST(RestartPolicy, AsksNoMachineIfTheRunEndsAnyway) {
  Cluster cluster = cluster_of_two();
  cluster.machines.back().shell = {"/does/not/exist"};
  RestartPolicy policy(cluster, kProgram, {});
  policy.add({.at_s = 1, .code = ErrorCode::kConfig});
  const auto decision = policy.decide_next();
  ASSERT_TRUE(decision.ok()) << describe(decision.error());
  EXPECT_EQ(decision->next_action, NextAction::kEnd);
  EXPECT_EQ(policy.problems(), "");
}

TEST(RestartPolicy, LeavesOutAMachineForATimeWithoutCountingAFailure) {
  double now_s = 100;
  const auto all_answer = [](const std::set<std::string>& machines) -> Result<std::vector<Member>> {
    std::vector<Member> members;
    for (const std::string& machine : machines) members.push_back({.machine = machine});
    return members;
  };
  RestartPolicy policy({"box", "desk"}, {}, all_answer, [&] { return now_s; });
  policy.exclude_for("box", 10);
  policy.add({.at_s = 100, .code = ErrorCode::kPeer, .is_by_request = true});
  EXPECT_THAT(policy.decide_next()->without, ElementsAre("box"));
  now_s = 111;
  EXPECT_THAT(policy.decide_next()->without, IsEmpty());
  // A machine on probation would be left out after one failure.
  policy.add(failure_of("box", false));
  EXPECT_EQ(policy.decide_next()->excluded, "");
}

TEST(RestartPolicy, LeavesOutAnExcludedMachineUntilItIsRequired) {
  const Cluster cluster = cluster_of_two();
  RestartPolicy policy(cluster, kProgram, {});
  policy.add(failure_of("box", /*cannot_connect=*/true));
  const auto first = policy.decide_next();
  ASSERT_TRUE(first.ok()) << describe(first.error());
  EXPECT_EQ(first->excluded, "box");
  policy.exclude(first->excluded);
  policy.add({.at_s = 2, .code = ErrorCode::kPeer});
  const auto second = policy.decide_next();
  ASSERT_TRUE(second.ok()) << describe(second.error());
  EXPECT_THAT(second->without, ElementsAre("box"));
  policy.require({"box"});
  const auto third = policy.decide_next();
  ASSERT_TRUE(third.ok()) << describe(third.error());
  EXPECT_THAT(third->without, IsEmpty());
}

}  // namespace
}  // namespace motley
