// A slow disk is not a lost peer, and after a disk failure the run can be started again.
#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

using testing::HasSubstr;

// The second machine's disk is emulated for its shards (tests/support/slow_disk.cc).
std::string cluster_with_disk(const std::string& disk) {
  return fmt::format("{}shell = [\"env\", \"LD_PRELOAD={}\", \"{}\"]\n", kDeskAndBox,
                     MOTLEY_SLOW_DISK, disk);
}

std::vector<std::string> on_two_machines(const std::string& cluster, const std::string& transport) {
  std::vector<std::string> words = SmallJob::measured_with({}, kDeskAndBox);
  words.insert(words.end(), {"--cluster", cluster, "--pin", "always desk", "--pin", "always box",
                             "--set", "comm.transport=" + transport, "--set", "train.steps=4",
                             "--set", "train.warmup_steps=1", "--set", "parallel.cuts=[3]"});
  return words;
}

class SlowDisk : public testing::TestWithParam<const char*> {};

// Each save of rank 1 takes several times as long as the timeout of messages.
TEST_P(SlowDisk, IsNoLostPeer) {
  const SmallJob job;
  const std::string cluster =
      job.folder().write("cluster.toml", cluster_with_disk("MOTLEY_SLOW_S=0.125"));
  auto words = on_two_machines(cluster, GetParam());
  words.insert(words.end(), {"--set", "checkpoint.every=2", "--set", "comm.timeout_s=2"});
  const double start_s = now_s();
  const Outcome outcome = job.train("run", words);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_GT(now_s() - start_s, 5) << "the disk was not slow";
  EXPECT_NE(job.parameter_hash("run", 4), "");
}

INSTANTIATE_TEST_SUITE_P(, SlowDisk, testing::Values(MOTLEY_TRANSPORTS));

// Rank 1 reads its parameters for longer than the start timeout.
TEST(SlowStart, IsWaitedForAsLongAsItGetsOn) {
  const SmallJob job;
  const std::string cluster =
      job.folder().write("cluster.toml", cluster_with_disk("MOTLEY_READ_S=0.25"));
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
  EXPECT_THAT(failed.err, HasSubstr("no checkpoint was saved yet: restart without --resume"));
  auto words = on_two_machines(broken, "tcp");
  words.emplace_back("--resume");
  const Outcome resumed = job.train("run", words);
  EXPECT_THAT(resumed.err, HasSubstr("Input/output error")) << "it begins anew all the same";
  const std::string mended = job.folder().write("mended.toml", cluster_with_disk("MENDED=1"));
  const Outcome again = job.train("run", on_two_machines(mended, "tcp"));
  EXPECT_EQ(again.status, 0) << again.err;
}

}  // namespace
}  // namespace motley::test
