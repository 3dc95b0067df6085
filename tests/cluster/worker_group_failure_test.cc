#include <chrono>
#include <thread>

#include "cluster/launch/worker_group.h"
#include "tests/cluster/worker_group_fixture.h"

namespace motley {
namespace {

using testing::HasSubstr;

class WorkerGroupFailureTest : public WorkerGroupFixture {};

TEST_F(WorkerGroupFailureTest, NamesAKilledWorkerAndItsWork) {
  add(R"([["pid"], ["wait"]])");
  add(R"([["pid"], ["beat", 12, "forward of micro-batch 3"], ["kill", 9]])");
  const Error error = run_failing();
  EXPECT_EQ(error.code, ErrorCode::kPeer);
  EXPECT_EQ(
      error.what,
      "stage 1 (test) was killed by signal 9 (Killed), during forward of micro-batch 3 in step 12");
}

TEST_F(WorkerGroupFailureTest, BlamesTheDeadThoughItsPeerComplainedFirst) {
  const std::string fifo = meeting_point();
  add(fmt::format(R"([["error", 4, "stage 1 is gone"], ["release", "{}"], ["exit", 4]])", fifo));
  add(fmt::format(R"([["await", "{}"], ["kill", 9]])", fifo));
  EXPECT_THAT(run_failing().what, HasSubstr("stage 1 (test) was killed by signal 9"));
}

TEST_F(WorkerGroupFailureTest, BlamesAnOwnErrorThoughAPeerComplainedFirst) {
  const std::string fifo = meeting_point();
  add(fmt::format(R"([["error", 4, "stage 1 is gone"], ["release", "{}"], ["exit", 4]])", fifo));
  add(fmt::format(R"([["await", "{}"], ["error", 8, "bad tokens"], ["exit", 8]])", fifo));
  const Error error = run_failing();
  EXPECT_EQ(error.code, ErrorCode::kData);
  EXPECT_EQ(error.what, "stage 1 (test): bad tokens");
}

TEST_F(WorkerGroupFailureTest, ReportsALostPeerWhenThatIsAllThereIs) {
  add(R"([["error", 4, "stage 1 does not answer"], ["wait"]])");
  add(R"([["wait"]])");
  const Error error = run_failing();
  EXPECT_EQ(error.code, ErrorCode::kPeer);
  EXPECT_EQ(error.what, "stage 0 (test): stage 1 does not answer");
}

TEST_F(WorkerGroupFailureTest, QuotesTheLastWordsOfAWorkerThatExits) {
  add(R"([["complain", "cannot load libtorch"], ["exit", 3]])", true);
  const Error error = run_failing();
  EXPECT_EQ(error.code, ErrorCode::kPeer);
  EXPECT_EQ(error.what, "stage 0 (test) exited with status 3, before it was ready");
  EXPECT_THAT(error.cause, HasSubstr("cannot load libtorch"));
}

TEST_F(WorkerGroupFailureTest, DoesNotTakeASilentExitForSuccess) {
  add(R"([["exit", 0]])");
  EXPECT_THAT(run_failing().what, HasSubstr("exited with status 0"));
}

TEST_F(WorkerGroupFailureTest, SaysWhenTheProgramIsNotThere) {
  add("[]").program = "/nonexistent/motley-stage";
  const Error error = run_failing();
  EXPECT_THAT(error.what, HasSubstr("status 127"));
  EXPECT_THAT(error.cause, HasSubstr("/nonexistent/motley-stage"));
  EXPECT_THAT(error.remedy, HasSubstr("motley_dir"));
}

TEST_F(WorkerGroupFailureTest, SaysWhenThePrefixIsNotThere) {
  add("[]").machine.shell = {"/nonexistent/shell"};
  EXPECT_THAT(run_failing().what, HasSubstr("cannot start '/nonexistent/shell'"));
}

TEST_F(WorkerGroupFailureTest, RefusesALineThatIsNotJson) {
  add(R"([["print", "{broken"], ["wait"]])");
  const Error error = run_failing();
  EXPECT_EQ(error.code, ErrorCode::kPeer);
  EXPECT_EQ(error.what, "stage 0 (test) violates the protocol");
}

TEST_F(WorkerGroupFailureTest, RefusesALineWithoutEnd) {
  add(R"([["flood", 8000000], ["wait"]])");
  EXPECT_THAT(run_failing().cause, HasSubstr("a line of more than"));
}

TEST_F(WorkerGroupFailureTest, RefusesAWorkerOfAnotherProtocol) {
  add(R"([["hello", 77], ["wait"]])", true);
  EXPECT_THAT(run_failing().cause, HasSubstr("protocol version 77"));
}

TEST_F(WorkerGroupFailureTest, RefusesAWorkerThatDoesNotGreet) {
  add(R"([["ready"], ["wait"]])", true);
  EXPECT_THAT(run_failing().cause, HasSubstr("not 'hello'"));
}

// Ends before the start timeout, and reports an address and a direction.
TEST_F(WorkerGroupFailureTest, EndsWhereWorkersCannotConnect) {
  PeerFault fault;
  options_.on_fault = [&](const PeerFault& found) { fault = found; };
  for (const int peer : {1, 0}) {
    const Json unreached = {{"event", "unreached"},
                            {"peers",
                             {{{"rank", peer},
                               {"address", "10.0.0.1:4000"},
                               {"state", "refused"},
                               {"words", "Connection refused"},
                               {"since_s", 2}}}}};
    Json script = Json::array({Json{"hello"}, Json{"address", "a"}, Json{"message"}});
    for (int i = 0; i < 100; ++i) {
      script.push_back({"say", unreached});
      script.push_back({"pause", 0.1});
    }
    add(script.dump(), true).machine.name = peer == 1 ? "desk" : "box";
  }
  const Error error = run_failing();
  EXPECT_EQ(error.code, ErrorCode::kPeer);
  EXPECT_EQ(error.what, "box and desk cannot connect to each other");
  EXPECT_THAT(error.cause, HasSubstr("desk to box at 10.0.0.1:4000: Connection refused"));
  EXPECT_THAT(fault.machines, testing::ElementsAre("box", "desk"));
  EXPECT_TRUE(fault.cannot_connect);
}

TEST_F(WorkerGroupFailureTest, TellsWhichMachineFailed) {
  PeerFault fault;
  options_.on_fault = [&](const PeerFault& found) { fault = found; };
  add(R"([["wait"]])").machine.name = "desk";
  add(R"([["kill", 9]])").machine.name = "box";
  (void)run_failing();
  EXPECT_THAT(fault.machines, testing::ElementsAre("box"));
}

TEST_F(WorkerGroupFailureTest, NoticesAFrozenWorker) {
  options_.patience_s = 0.2;
  add(R"([["done"]])");
  add(R"([["pid"], ["beat", 2, "backward of micro-batch 0"], ["kill", 19]])");
  const Error error = run_failing();
  EXPECT_EQ(error.code, ErrorCode::kPeer);
  EXPECT_EQ(
      error.what,
      "stage 1 (test) sent no heartbeat for 0.25 s, during backward of micro-batch 0 in step 2");
}

// As while the launcher commits a checkpoint on a slow disk.
TEST_F(WorkerGroupFailureTest, DoesNotTakeItsOwnAbsenceForSilence) {
  options_.patience_s = 0.5;
  add(R"([["release", "FIFO"], ["await", "FIFO"], ["done"]])");
  add(R"([["await", "FIFO"], ["say", {"event": "trace"}], ["release", "FIFO"], ["done"]])");
  const std::string first = meeting_point();
  const std::string second = meeting_point();
  specs_[0].job.options["script"][0][1] = specs_[1].job.options["script"][0][1] = first;
  specs_[0].job.options["script"][1][1] = specs_[1].job.options["script"][2][1] = second;
  const Result<void> outcome = run([](int /*worker*/, const Json& /*event*/) -> Result<void> {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    return {};
  });
  EXPECT_TRUE(outcome.ok()) << describe(outcome.error());
}

TEST_F(WorkerGroupFailureTest, NamesTheWorkersThatDoNotGetReady) {
  options_.start_timeout_s = 2;
  add(R"([["hello"], ["ready"], ["wait"]])", true);
  add(R"([["hello"], ["wait"]])", true);
  EXPECT_EQ(run_failing().what, "not ready, and no progress for 2 s: stage 1 (test)");
}

TEST_F(WorkerGroupFailureTest, KillsWorkersThatIgnoreItsRequests) {
  add(R"([["pid"], ["grandchild"], ["release", "FIFO"], ["ignore"]])");
  add(R"([["pid"], ["await", "FIFO"], ["exit", 1]])");
  const std::string fifo = meeting_point();
  specs_[0].job.options["script"][2][1] = fifo;
  specs_[1].job.options["script"][1][1] = fifo;
  EXPECT_THAT(run_failing().what, HasSubstr("stage 1 (test) exited with status 1"));
  EXPECT_EQ(pids_.size(), 3U);
}

// The timeout is longer than the test: waiting for the worker would fail it.
TEST_F(WorkerGroupFailureTest, DoesNotAskAFrozenWorkerToEnd) {
  options_.kill_grace_s = 3600;
  add(R"([["await", "FIFO"],
          ["say", {"event": "error", "code": 4, "what": "a peer is gone", "lost": 1}],
          ["exit", 4]])");
  add(R"([["pid"], ["release", "FIFO"], ["kill", 19]])");
  const std::string fifo = meeting_point();
  specs_[0].job.options["script"][0][1] = fifo;
  specs_[1].job.options["script"][1][1] = fifo;
  EXPECT_THAT(run_failing().what, HasSubstr("stage 1 (test) was lost"));
  EXPECT_EQ(pids_.size(), 1U);
}

TEST_F(WorkerGroupFailureTest, SurvivesAWorkerThatClosesItsInput) {
  WorkerSpec& spec = add("[]");
  spec.machine.shell = {"sh", "-c", "exec 0<&-; kill -9 $$"};
  spec.job.options["ballast"] = std::string(1 << 20, 'x');
  EXPECT_THAT(run_failing().what, HasSubstr("killed by signal 9"));
}

TEST_F(WorkerGroupFailureTest, WarnsOnlyWhenAWorkerFailsAfterItHasFinished) {
  add(R"([["done"], ["exit", 1]])");
  EXPECT_TRUE(run().ok());
}

}  // namespace
}  // namespace motley
