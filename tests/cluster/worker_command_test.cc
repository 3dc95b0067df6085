#include "cluster/launch/worker_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rapidcheck.h>

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

TEST(QuoteForShell, LeavesHarmlessWordsAlone) {
  EXPECT_EQ(quote_for_shell("/opt/motley-1.0/bin"), "/opt/motley-1.0/bin");
}

TEST(QuoteForShell, QuotesWhatAShellWouldInterpret) {
  EXPECT_EQ(quote_for_shell(""), "''");
  EXPECT_EQ(quote_for_shell("$(id)"), "'$(id)'");
  EXPECT_EQ(quote_for_shell("it's"), "'it'\\''s'");
}

// What the word means to a shell, taken apart by the rules of single quotes alone.
std::string unquote(const std::string& quoted) {
  std::string word;
  bool inside = false;
  for (std::size_t i = 0; i < quoted.size(); ++i) {
    if (quoted[i] == '\'') {
      inside = !inside;
    } else if (quoted[i] == '\\' && !inside) {
      word += quoted[++i];
    } else {
      RC_ASSERT(inside || std::string(" $`\"*?;&|<>()~#\n").find(quoted[i]) == std::string::npos);
      word += quoted[i];
    }
  }
  RC_ASSERT(!inside);
  return word;
}

TEST(QuoteForShell, IsReadBackAsTheSameWord) {
  EXPECT_TRUE(rc::check([]() {
    const auto word = *rc::gen::container<std::string>(
        rc::gen::element('a', ' ', '\'', '"', '$', '\\', '`', '*', ';', '\n', '/'));
    RC_ASSERT(unquote(quote_for_shell(word)) == word);
  }));
}

}  // namespace
}  // namespace motley
