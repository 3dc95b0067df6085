// Workers of a stopped launcher end.
#include <signal.h>

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

using testing::HasSubstr;

// As when the machine sleeps, or after ^Z.
TEST(StoppedLauncher, IsLeftByItsWorkersAndSaysSoWhenItWakes) {
  const SmallJob job;
  RunningMotley run(job.train_words(
      "run", {"--stages", "2", "--set", "train.steps=1000000", "--set", "comm.patience_s=6"}));
  const std::filesystem::path folder = job.run_dir("run");
  ASSERT_TRUE(eventually([&] { return read_text(folder / "metrics.jsonl").size() > 1000; }));
  const std::vector<pid_t> workers = run.workers();
  ASSERT_EQ(workers.size(), 2U);
  ASSERT_EQ(::kill(run.pid(), SIGSTOP), 0);
  const double stopped_at_s = now_s();
  EXPECT_TRUE(eventually([&] { return std::ranges::none_of(workers, process_exists); }));
  EXPECT_LT(now_s() - stopped_at_s, 10 + 2) << "with slack for a busy machine";
  // The first reports the expired lease; the other may lose its peer before its own lease expires.
  EXPECT_THAT(read_text(folder / "log" / "0.log") + read_text(folder / "log" / "1.log"),
              HasSubstr("no message from the launcher"));
  ASSERT_EQ(::kill(run.pid(), SIGCONT), 0);
  const Outcome outcome = run.wait();
  EXPECT_EQ(outcome.status, 4);
  EXPECT_THAT(outcome.err, HasSubstr("because its lease expired, "));
  EXPECT_THAT(outcome.err, HasSubstr("--resume continues from step "));
  EXPECT_THAT(outcome.err, HasSubstr("which the workers saved"));
  EXPECT_TRUE(eventually([&] {
    return std::ranges::none_of(workers, [](pid_t pid) { return process_exists(pid); });
  }));
}

}  // namespace
}  // namespace motley::test
