#include "cluster/launch/worker_group.h"

#include "tests/cluster/worker_group_fixture.h"

namespace motley {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class WorkerGroupTest : public WorkerGroupFixture {};

TEST_F(WorkerGroupTest, RunsUntilAllAreDone) {
  add(R"([["say", {"event": "step", "step": 1}], ["done"]])");
  add(R"([["say", {"event": "step", "step": 1}], ["done"]])");
  const Result<void> outcome = run();
  ASSERT_TRUE(outcome.ok()) << describe(outcome.error());
  EXPECT_EQ(events_.size(), 2U);
}

TEST_F(WorkerGroupTest, GivesEveryWorkerTheAddressesInRankOrder) {
  for (const char* name : {"a", "b", "c"}) {
    add(fmt::format(R"([["hello"], ["address", "{}"], ["message"], ["ready"], ["done"]])", name),
        true);
  }
  ASSERT_TRUE(run().ok());
  ASSERT_EQ(events_.size(), 3U);
  for (const Event& event : events_) {
    EXPECT_EQ(event.event["message"].dump(), R"({"addresses":["a","b","c"]})");
  }
}

TEST_F(WorkerGroupTest, HandsOnOnlyEventsThatMeanSomethingToTheRun) {
  add(R"([["beat", 1, "forward"], ["say", {"event": "trace"}], ["say", {"event": "shard"}], ["done"]])");
  ASSERT_TRUE(run().ok());
  ASSERT_EQ(events_.size(), 2U);
  EXPECT_EQ(events_[0].event["event"], "trace");
  EXPECT_EQ(events_[1].event["event"], "shard");
}

TEST_F(WorkerGroupTest, SetsTheThreadsOfTheMathLibraries) {
  add(R"([["environment", "OMP_NUM_THREADS"], ["environment", "OPENBLAS_NUM_THREADS"], ["done"]])")
      .job.threads = 3;
  ASSERT_TRUE(run().ok());
  ASSERT_EQ(events_.size(), 2U);
  EXPECT_EQ(events_[0].event["value"], "3");
  EXPECT_EQ(events_[1].event["value"], "3");
}

TEST_F(WorkerGroupTest, HandsOnWhatAWorkerTellsAtItsEnd) {
  add(R"([["say", {"event": "done", "peak_bytes": 7}]])");
  ASSERT_TRUE(run().ok());
  ASSERT_EQ(done_.size(), 1U);
  EXPECT_EQ(done_[0].event["peak_bytes"], 7);
}

TEST_F(WorkerGroupTest, StartsThroughAPrefix) {
  add(R"([["environment", "PREFIX"], ["done"]])").machine.shell = {"env", "PREFIX=a b'c"};
  ASSERT_TRUE(run().ok());
  ASSERT_EQ(events_.size(), 1U);
  EXPECT_EQ(events_[0].event["value"], "a b'c");
}

// A stand-in for ssh: joins its arguments and passes them to a shell, as sshd does.
TEST_F(WorkerGroupTest, StartsThroughSshThoughTheProgramsPathHasBlanks) {
  const auto ssh = folder_ / "ssh";
  std::ofstream(ssh) << "#!/bin/sh\nshift\nexec sh -c \"$*\"\n";
  std::filesystem::permissions(ssh, std::filesystem::perms::owner_all);
  const auto program = folder_ / "it's a worker";
  std::filesystem::create_symlink(MOTLEY_FAKE_WORKER, program);
  WorkerSpec& spec = add(R"([["pid"], ["done"]])");
  spec.machine.shell = {ssh.string(), "box"};
  spec.program = program;
  const Result<void> outcome = run();
  ASSERT_TRUE(outcome.ok()) << describe(outcome.error());
  EXPECT_EQ(events_.size(), 1U);
}

TEST_F(WorkerGroupTest, KeepsWhatWorkersWriteToStderr) {
  add(R"([["complain", "one"], ["complain", "two"], ["done"]])");
  add(R"([["complain", "three"], ["done"]])");
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(log_of(0), "one\ntwo\n");
  EXPECT_EQ(log_of(1), "three\n");
}

TEST_F(WorkerGroupTest, TakesTheGreetingOfARemoteShellForLogLines) {
  add(R"([["print", "Welcome to box!"], ["print", "{ it is a box }"], ["print", "{\"motd\": 1}"],
          ["hello"], ["ready"], ["done"], ["print", "Goodbye"]])",
      true);
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(log_of(0), "Welcome to box!\n{ it is a box }\n{\"motd\": 1}\nGoodbye\n");
}

TEST_F(WorkerGroupTest, IsNotHeldUpByAWorkerThatDoesNotRead) {
  add(R"([["done"]])").job.options["ballast"] = std::string(1 << 20, 'x');
  WorkerSpec& deaf = add(R"([])");
  deaf.machine.shell = {
      "sh", "-c",
      fmt::format("echo '{{\"event\":\"hello\",\"protocol\":{}}}'; exec sleep 1000",
                  kProtocolVersion)};
  deaf.job.options["ballast"] = std::string(1 << 20, 'x');
  // The timeout applies to both; the worker that reads must be ready by then also on a busy
  // computer.
  options_.start_timeout_s = 3;
  const Error error = run_failing();
  EXPECT_THAT(error.what, AllOf(HasSubstr("stage 1 (test)"), Not(HasSubstr("stage 0"))));
}

TEST_F(WorkerGroupTest, KillsAGrandchildThatOutlivesItsWorker) {
  add(R"([["grandchild"], ["done"]])");
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(pids_.size(), 1U);
}

TEST_F(WorkerGroupTest, EndsAllWhenTheHandlerFails) {
  add(R"([["pid"], ["wait"]])");
  add(R"([["pid"], ["wait"]])");
  const Result<void> outcome = run([this](int, const Json&) -> Result<void> {
    if (events_.size() < 2) return {};
    return Error{ErrorCode::kCorrupt, "the disk is full", "", ""};
  });
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().what, "the disk is full");
}

TEST_F(WorkerGroupTest, TellsAWorkerToStopBeforeItClosesItsInput) {
  add(R"([["say", {"event": "result"}], ["message"], ["wait"]])");
  const Result<void> outcome = run([](int, const Json& event) -> Result<void> {
    EXPECT_FALSE(event.contains("message")) << "events do not count once the run ends";
    return Error{ErrorCode::kCorrupt, "the disk is full", "", ""};
  });
  EXPECT_FALSE(outcome.ok());
}

class WorkerGroupSignalTest : public WorkerGroupFixture, public testing::WithParamInterface<int> {};

TEST_P(WorkerGroupSignalTest, EndsAllOnASignal) {
  add(R"([["pid"], ["wait"]])");
  add(R"([["pid"], ["ignore"]])");
  const Result<void> outcome = run([this](int, const Json&) -> Result<void> {
    if (events_.size() == 2) ::raise(GetParam());
    return {};
  });
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(static_cast<int>(outcome.error().code), 128 + GetParam());
}

TEST_P(WorkerGroupSignalTest, DoesNotWaitAfterTheSecondSignal) {
  options_.kill_grace_s = 1000;  // longer than the test's timeout
  add(R"([["pid"], ["ignore"]])");
  const Result<void> outcome = run([](int, const Json&) -> Result<void> {
    ::raise(SIGINT);
    ::raise(SIGTERM);
    return {};
  });
  EXPECT_FALSE(outcome.ok());
}

INSTANTIATE_TEST_SUITE_P(, WorkerGroupSignalTest, testing::Values(SIGINT, SIGTERM));

}  // namespace
}  // namespace motley
