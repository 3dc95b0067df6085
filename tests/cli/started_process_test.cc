// Which launcher has started a process, by environments as real launchers set them, and by hostile
// ones.
#include "cli/launch/started_process.h"

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>

namespace motley {
namespace {

using testing::HasSubstr;
using testing::Ne;
using Variables = std::map<std::string, std::string>;

Environment environment(Variables variables) {
  return [variables = std::move(variables)](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  };
}

StartedProcess process(const Variables& variables, const StarterFacts& facts = {}) {
  const auto found = started_process(environment(variables), facts);
  EXPECT_TRUE(found.ok()) << describe(found.error());
  return found.ok() ? *found : StartedProcess{};
}

std::string refusal(const Variables& variables, const StarterFacts& facts = {}) {
  const auto found = started_process(environment(variables), facts);
  EXPECT_FALSE(found.ok());
  if (found.ok()) return "";
  EXPECT_EQ(found.error().code, ErrorCode::kUsage);
  return found.error().what + ": " + found.error().cause;
}

// Of torch 1.13, for the second of two processes on the second of two machines.
const Variables kTorchrun = {{"RANK", "3"},
                             {"WORLD_SIZE", "4"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "2"},
                             {"GROUP_RANK", "1"},
                             {"MASTER_ADDR", "10.77.0.1"},
                             {"MASTER_PORT", "29500"},
                             {"TORCHELASTIC_RESTART_COUNT", "0"},
                             {"TORCHELASTIC_RUN_ID", "none"}};

const Variables kSlurm = {{"SLURM_JOB_ID", "17"},
                          {"SLURM_STEP_ID", "0"},
                          {"SLURM_STEP_NUM_TASKS", "4"},
                          {"SLURM_STEP_NODELIST", "m[1-3]"},
                          {"SLURM_STEP_TASKS_PER_NODE", "2,1(x2)"},
                          {"SLURM_JOB_NODELIST", "a,m[1-3]"},
                          {"SLURM_PROCID", "1"},
                          {"SLURM_LOCALID", "1"},
                          {"SLURM_NODEID", "0"}};

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

TEST(StartedProcess, OfTorchrun) {
  const StartedProcess found = process(kTorchrun);
  EXPECT_EQ(found.starter, "torchrun");
  EXPECT_EQ(found.rank, 3);
  EXPECT_EQ(found.processes, 4);
  EXPECT_EQ(found.local_rank, 1);
  EXPECT_EQ(found.places, 2);
  EXPECT_EQ(found.head, "10.77.0.1");
  EXPECT_EQ(found.port, 29501);  // its store listens at MASTER_PORT
}

TEST(StartedProcess, SharesItsGroupWithThoseOfItsMachineAlone) {
  Variables first = with(kTorchrun, "RANK", "2");
  first["LOCAL_RANK"] = "0";
  Variables elsewhere = with(kTorchrun, "RANK", "1");
  EXPECT_EQ(process(kTorchrun).group, process(first).group);
  EXPECT_THAT(process(elsewhere).group, Ne(process(first).group));
  EXPECT_THAT(process(with(kTorchrun, "TORCHELASTIC_RESTART_COUNT", "1")).group,
              Ne(process(kTorchrun).group));
}

TEST(StartedProcess, OfADriverThatSetsTheMinimum) {
  const StartedProcess found =
      process({{"RANK", "0"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "node-a"}});
  EXPECT_EQ(found.local_processes, 1);
  EXPECT_EQ(found.port, 29600);
}

TEST(StartedProcess, OfOpenMpi) {
  const StartedProcess found = process({{"OMPI_COMM_WORLD_RANK", "1"},
                                        {"OMPI_COMM_WORLD_SIZE", "2"},
                                        {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"},
                                        {"PMIX_RANK", "1"},
                                        {"PMIX_NAMESPACE", "2052259841"}});
  EXPECT_EQ(found.starter, "mpirun");
  EXPECT_EQ(found.rank, 1);
  EXPECT_EQ(found.head, "");
}

// Slurm's variables are those of MPICH's proxies: one on each node.
TEST(StartedProcess, OfMpichInAJobOfSlurm) {
  Variables variables = with(kSlurm, "PMI_RANK", "5");
  variables["PMI_SIZE"] = "6";
  variables["MPI_LOCALRANKID"] = "1";
  variables["MPI_LOCALNRANKS"] = "2";
  const StartedProcess found = process(variables);
  EXPECT_EQ(found.starter, "mpiexec");
  EXPECT_EQ(found.rank, 5);
  EXPECT_EQ(found.head, "m1");
}

TEST(StartedProcess, OfSrun) {
  const StartedProcess found = process(kSlurm);
  EXPECT_EQ(found.starter, "srun");
  EXPECT_EQ(found.processes, 4);
  EXPECT_EQ(found.local_processes, 2);
  EXPECT_EQ(found.head, "m1");
  EXPECT_EQ(found.port, 29617);
  // As with srun --mpi=pmi2.
  Variables variables = with(kSlurm, "PMI_RANK", "1");
  variables["PMI_SIZE"] = "4";
  EXPECT_EQ(process(variables).starter, "srun");
}

TEST(StartedProcess, OfAnIndexedJobFindsTheFirstPod) {
  const Variables variables = {{"JOB_COMPLETION_INDEX", "12"}};
  const StarterFacts facts{.machines = 16,
                           .own_host = "train-m-0-12.train.default.svc.cluster.local"};
  const StartedProcess found = process(variables, facts);
  EXPECT_EQ(found.rank, 12);
  EXPECT_EQ(found.processes, 16);
  EXPECT_EQ(found.head, "train-m-0-0.train.default.svc.cluster.local");
  EXPECT_EQ(process(variables, {.machines = 16, .own_host = "other"}).head, "");
  EXPECT_EQ(process(with(variables, "WORLD_SIZE", "13")).processes, 13);
  EXPECT_THAT(refusal(variables), HasSubstr("the number of machines is not known"));
}

TEST(StartedProcess, CountsMachinesThatTheUserAnnounces) {
  const StartedProcess found = process(kTorchrun, {.machines = 2});
  EXPECT_EQ(found.processes, 2);
  EXPECT_EQ(found.places, 1);
  EXPECT_EQ(found.local_processes, 2);
}

TEST(StartedProcess, NamesTheVariableThatIsMissingOrWrong) {
  EXPECT_THAT(refusal({}), HasSubstr("no launcher of processes has started this one"));
  EXPECT_THAT(refusal({{"SLURM_JOB_ID", "17"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "3"}}),
              HasSubstr("srun has not started this process"));
  EXPECT_THAT(refusal({{"RANK", "0"}}), HasSubstr("WORLD_SIZE does not describe a process"));
  EXPECT_THAT(refusal(with(kTorchrun, "RANK", "4")), HasSubstr("not a number from 0 to 3"));
  EXPECT_THAT(refusal(with(kTorchrun, "LOCAL_RANK", "2")), HasSubstr("this machine has 2"));
  EXPECT_THAT(refusal(with(kTorchrun, "RANK", "0")), HasSubstr("not the first one"));
  EXPECT_THAT(refusal(with(kTorchrun, "MASTER_PORT", "65536")), HasSubstr("MASTER_PORT"));
  EXPECT_THAT(refusal(with(kSlurm, "SLURM_NODEID", "3")), HasSubstr("without node 3"));
  EXPECT_EQ(process(with(kTorchrun, "MASTER_PORT", "65535")).port, 65534);
}

TEST(StartedProcess, RefusesHostileValues) {
  for (const char* wrong :
       {"-1", "+1", "1e1", "0x1", " 1", "1 ", "99999999999999999999", "one", "\n", "$(reboot)"}) {
    EXPECT_THAT(refusal(with(kTorchrun, "RANK", wrong)), HasSubstr("RANK")) << wrong;
  }
  for (const char* wrong : {"-oProxyCommand=reboot", "a b", "a;b", "a\nb", "$(reboot)"}) {
    EXPECT_THAT(refusal(with(kTorchrun, "MASTER_ADDR", wrong)), HasSubstr("MASTER_ADDR")) << wrong;
  }
  EXPECT_FALSE(
      started_process(environment(with(kTorchrun, "MASTER_ADDR", std::string(300, 'a'))), {}).ok());
}

RC_GTEST_PROP(StartedProcess,
              IsConsistentForAnyValues,
              (const std::vector<std::uint8_t>& choices, int machines)) {
  const std::vector<std::string> names = {"RANK",
                                          "WORLD_SIZE",
                                          "LOCAL_RANK",
                                          "LOCAL_WORLD_SIZE",
                                          "SLURM_PROCID",
                                          "SLURM_STEP_NUM_TASKS",
                                          "SLURM_LOCALID",
                                          "SLURM_NODEID",
                                          "PMI_RANK",
                                          "PMI_SIZE",
                                          "JOB_COMPLETION_INDEX"};
  const std::vector<std::string> values = {"", "0", "1", "2", "3", "2(x2)", "-1", "x"};
  Variables variables;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    variables[names[i % names.size()]] = values[choices[i] % values.size()];
  }
  const auto found = started_process(environment(variables), {.machines = std::abs(machines % 4)});
  if (!found.ok()) return;
  RC_ASSERT(found->rank >= 0);
  RC_ASSERT(found->local_rank >= 0);
  RC_ASSERT(found->local_rank < found->local_processes);
  RC_ASSERT(found->port > 0);
}

}  // namespace
}  // namespace motley
