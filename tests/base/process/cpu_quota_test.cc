#include "base/process/cpu_quota.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/process/process.h"

namespace motley {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string groups_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/cgroup", pid));
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(CpuQuota, HoldsTheProcessUntilItIsRemoved) {
  const std::string name = fmt::format("motley-test-{}", ::getpid());
  for (int round = 0; round < 2; ++round) {  // the second round would fail if the first left its
                                             // group behind
    Result<CpuQuota> quota = CpuQuota::create(name, 0.5);
    if (!quota && round == 0) GTEST_SKIP() << quota.error().cause;
    ASSERT_TRUE(quota.ok()) << describe(quota.error());
    Result<Process> process = Process::start({"cat"});
    ASSERT_TRUE(process.ok());
    ASSERT_TRUE(quota->add(process->pid()).ok());
    EXPECT_THAT(groups_of(process->pid()), HasSubstr(name));
    EXPECT_THAT(groups_of(::getpid()), Not(HasSubstr(name)));
  }
}

TEST(CpuQuota, SaysWhyItIsNotPossible) {
  const Result<CpuQuota> quota = CpuQuota::create("no/such/folder", 0.5);
  ASSERT_FALSE(quota.ok());
  EXPECT_FALSE(quota.error().cause.empty());
}

}  // namespace
}  // namespace motley
