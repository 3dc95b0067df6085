// What is slow is not lost, and what is lost does not go on: slow disks, a first save that fails, a
// launcher that is stopped.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

using testing::HasSubstr;

// The second of two machines has a disk of its own kind, as far as its shards go.
std::string cluster_with_disk(const std::string& disk) {
  return fmt::format(
      "[network]\ntrusted = true\n"
      "[[machine]]\nname = \"m1\"\naddress = \"127.0.0.1\"\nthreads = 1\n"
      "[[machine]]\nname = \"m2\"\naddress = \"127.0.0.1\"\nthreads = 1\n"
      "shell = [\"env\", \"LD_PRELOAD={}\", \"{}\"]\n",
      MOTLEY_SLOW_DISK, disk);
}

std::vector<std::string> on_two_machines(const std::string& cluster, const std::string& transport) {
  return {"--cluster", cluster,         "--pin", "always m1",
          "--pin",     "always m2",     "--set", "comm.transport=" + transport,
          "--set",     "train.steps=4", "--set", "train.warmup_steps=1"};
}

class SlowDisk : public testing::TestWithParam<const char*> {};

// Each save of rank 1 takes several times as long as anybody waits for a message.
TEST_P(SlowDisk, IsNoLostPeer) {
  const SmallJob job;
  const std::string cluster =
      job.folder().write("cluster.toml", cluster_with_disk("MOTLEY_SLOW_S=0.25"));
  auto words = on_two_machines(cluster, GetParam());
  words.insert(words.end(), {"--set", "checkpoint.every=2", "--set", "comm.timeout_s=2"});
  const double start_s = now_s();
  const Outcome outcome = job.train("run", words);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_GT(now_s() - start_s, 5) << "the disk was not slow";
  EXPECT_NE(job.parameter_hash("run", 4), "");
}

INSTANTIATE_TEST_SUITE_P(, SlowDisk, testing::Values(MOTLEY_TRANSPORTS));

// Rank 1 reads its parameters for longer than a rank may stand still before it is ready.
TEST(SlowStart, IsWaitedForAsLongAsItGetsOn) {
  const SmallJob job;
  const std::string cluster =
      job.folder().write("cluster.toml", cluster_with_disk("MOTLEY_READ_S=0.45"));
  auto words = on_two_machines(cluster, "tcp");
  words.insert(words.end(), {"--stop-after", "2"});
  ASSERT_EQ(job.train("run", words).status, 0);
  words.resize(words.size() - 2);
  words.insert(words.end(), {"--resume", "--set", "comm.start_timeout_s=7"});
  const double start_s = now_s();
  const Outcome outcome = job.train("run", words);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_GT(now_s() - start_s, 9) << "it did not load for long";
  EXPECT_THAT(outcome.err, HasSubstr("loading parameters and moments: "));
}

TEST(FailedFirstSave, LeavesARunThatCanBeStartedAgain) {
  const SmallJob job;
  const std::string broken = job.folder().write("broken.toml", cluster_with_disk("MOTLEY_FAILS=1"));
  const Outcome failed = job.train("run", on_two_machines(broken, "tcp"));
  ASSERT_NE(failed.status, 0);
  EXPECT_THAT(failed.err, HasSubstr("Input/output error"));
  EXPECT_THAT(failed.err, HasSubstr("no checkpoint was saved yet: start again, without --resume"));
  auto words = on_two_machines(broken, "tcp");
  words.emplace_back("--resume");
  const Outcome resumed = job.train("run", words);
  EXPECT_THAT(resumed.err, HasSubstr("Input/output error")) << "it begins anew all the same";
  const std::string mended = job.folder().write("mended.toml", cluster_with_disk("MENDED=1"));
  const Outcome again = job.train("run", on_two_machines(mended, "tcp"));
  EXPECT_EQ(again.status, 0) << again.err;
}

// A machine that sleeps, or ^Z.
TEST(StoppedLauncher, IsLeftByItsWorkersAndSaysSoWhenItWakes) {
  const SmallJob job;
  RunningMotley run(job.train_words("run", {"--stages", "2", "--set", "train.steps=1000000"}));
  const std::filesystem::path folder = job.run_dir("run");
  ASSERT_TRUE(eventually([&] { return read_text(folder / "metrics.jsonl").size() > 1000; }));
  const std::vector<pid_t> workers = run.workers();
  ASSERT_EQ(workers.size(), 2U);
  ASSERT_EQ(::kill(run.pid(), SIGSTOP), 0);
  const double stopped_at_s = now_s();
  EXPECT_TRUE(eventually([&] { return std::ranges::none_of(workers, process_exists); }));
  EXPECT_LT(now_s() - stopped_at_s, 10 + 2) << "with slack for a busy machine";
  // The first says so; the other may see its peer go before its own lease is over.
  EXPECT_THAT(read_text(folder / "log" / "0.log") + read_text(folder / "log" / "1.log"),
              HasSubstr("nothing was heard of the launcher"));
  ASSERT_EQ(::kill(run.pid(), SIGCONT), 0);
  const Outcome outcome = run.wait();
  EXPECT_EQ(outcome.status, 4);
  EXPECT_THAT(outcome.err, HasSubstr("because it heard nothing of this program, "));
  EXPECT_THAT(outcome.err, HasSubstr("no checkpoint was saved yet: start again"));
  EXPECT_TRUE(eventually([&] {
    return std::ranges::none_of(workers, [](pid_t pid) { return process_exists(pid); });
  }));
}

}  // namespace
}  // namespace motley::test
