#include "cluster/launch/reachability.h"

#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"

namespace motley {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kProgram = "/bin/sh";  // any file that may be run

Machine machine(const std::string& name, std::vector<std::string> shell) {
  Machine machine;
  machine.name = name;
  machine.shell = std::move(shell);
  return machine;
}

Error trouble_of(std::vector<Machine> machines, double answer_s = 20) {
  Cluster cluster;
  std::set<std::string> names;
  for (const Machine& each : machines) names.insert(each.name);
  cluster.machines = std::move(machines);
  const auto answer = check_reachable(cluster, names, kProgram, answer_s);
  EXPECT_FALSE(answer.ok());
  return answer.ok() ? Error{} : answer.error();
}

TEST(Reachability, MachinesThatAnswerAreFine) {
  Cluster cluster;
  cluster.machines = {machine("here", {}), machine("there", {"env", "A=b"})};
  const auto answer = check_reachable(cluster, {"here", "there"}, kProgram);
  EXPECT_TRUE(answer.ok()) << describe(answer.error());
}

TEST(Reachability, NamesAllThatDoNotAnswerAtOnceAndSaysWhatTheySaid) {
  const Error error = trouble_of(
      {machine("fine", {"env"}), machine("off", {"sh", "-c", "echo gone >&2; exit 255"}),
       machine("missing", {"/no/such/shell"}), machine("killed", {"sh", "-c", "kill -9 $$"})});
  EXPECT_EQ(error.code, ErrorCode::kPeer);
  EXPECT_THAT(error.what, HasSubstr("off, missing, killed"));
  EXPECT_THAT(error.what, Not(HasSubstr("fine")));
  EXPECT_THAT(error.cause, HasSubstr("off: its shell ended with status 255: gone"));
  EXPECT_THAT(error.cause, HasSubstr("/no/such/shell"));
  EXPECT_THAT(error.cause, HasSubstr("killed: its shell was killed by signal 9"));
  EXPECT_THAT(error.remedy, HasSubstr("motley doctor"));
}

TEST(Reachability, AsksAllAtTheSameTimeAndWaitsForNoneForLong) {
  const double start_s = now_s();
  std::vector<Machine> deaf;
  for (int i = 0; i < 40; ++i) {
    deaf.push_back(machine(fmt::format("m{}", i), {"sh", "-c", "exec sleep 1000"}));
  }
  const Error error = trouble_of(deaf, 0.5);
  EXPECT_THAT(error.cause, HasSubstr("m39: no answer within 0.5 s"));
  EXPECT_LT(now_s() - start_s, 15);  // one after another they would take 20 s
}

TEST(Reachability, AProgramThatIsNotThereIsToldFromAMachineThatIsNot) {
  Machine without = machine("without", {"env"});
  without.motley_dir = "/no/motley";
  EXPECT_THAT(trouble_of({without}).cause,
              HasSubstr("without: no program /no/motley/sh there that may be run"));
}

TEST(Reachability, OnlyTheNamedMachinesAreAsked) {
  Cluster cluster;
  cluster.machines = {machine("off", {"false"}), machine("fine", {"env"})};
  EXPECT_TRUE(check_reachable(cluster, {"fine"}, kProgram).ok());
}

TEST(Reachability, ADeviceThatCannotComputeIsAMistake) {
  Machine gpu = machine("gpu", {"false"});
  gpu.devices = {"cpu", "cuda:0"};
  const Error error = trouble_of({gpu});
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_THAT(error.what, HasSubstr("cuda:0"));
}

}  // namespace
}  // namespace motley
