#include "cluster/launch/worker_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley {
namespace {

using testing::ElementsAre;

constexpr const char* kSpins = "GOMP_SPINCOUNT=1000";
constexpr const char* kBlasSpins = "OPENBLAS_THREAD_TIMEOUT=4";
constexpr const char* kHugePages = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1";

TEST(WorkerCommand, StartsTheProgramWithItsThreadCount) {
  EXPECT_THAT(worker_command({}, "/opt/motley-stage", 2),
              ElementsAre("env", "OMP_NUM_THREADS=2", "OPENBLAS_NUM_THREADS=2", kSpins, kBlasSpins,
                          kHugePages, "/opt/motley-stage"));
}

TEST(WorkerCommand, PutsAnyPrefixBeforeItAsItIs) {
  EXPECT_THAT(
      worker_command({"scripts/lan", "exec", "m1"}, "/a b/motley-stage", 1),
      ElementsAre("scripts/lan", "exec", "m1", "env", "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1",
                  kSpins, kBlasSpins, kHugePages, "/a b/motley-stage"));
}

TEST(WorkerCommand, QuotesTheCommandForSshWhichJoinsItsArguments) {
  EXPECT_THAT(worker_command({"/usr/bin/ssh", "box"}, "/a b/motley-stage", 1),
              ElementsAre("/usr/bin/ssh", "box",
                          "env OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 "
                          "GOMP_SPINCOUNT=1000 OPENBLAS_THREAD_TIMEOUT=4 "
                          "GLIBC_TUNABLES=glibc.malloc.hugetlb=1 '/a b/motley-stage'"));
}

}  // namespace
}  // namespace motley
