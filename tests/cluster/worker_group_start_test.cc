// Start of a group: slow workers, stalled workers, many at once, and a busy sshd.
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/cluster/worker_group_fixture.h"

namespace motley {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

class WorkerGroupStartTest : public WorkerGroupFixture {
 protected:
  // Creates a program named ssh with the text `script`; its last argument is the command.
  [[nodiscard]] std::string make_ssh(const std::string& script) const {
    const std::filesystem::path path = folder_ / "ssh";
    std::ofstream(path) << "#!/bin/bash\n" << script;
    EXPECT_EQ(::chmod(path.c_str(), 0700), 0);
    return path.string();
  }
};

TEST_F(WorkerGroupStartTest, WaitsForOneThatLoadsForAsLongAsItGetsOn) {
  options_.start_timeout_s = 1.5;
  add(R"([["hello"], ["load", 10, 0.2, 10], ["ready"], ["done"]])", true);
  const Result<void> outcome = run();
  EXPECT_TRUE(outcome.ok()) << describe(outcome.error());
}

TEST_F(WorkerGroupStartTest, DoesNotTakeABeatForProgress) {
  options_.start_timeout_s = 1.5;
  add(R"([["hello"], ["load", 100, 0.1, 0], ["ready"], ["done"]])", true);
  EXPECT_EQ(run_failing().what,
            "not ready, and no progress for 1.5 s: stage 0 (test) (loading: 0 %)");
}

TEST_F(WorkerGroupStartTest, BlamesNobodyWhoWaitsForAnother) {
  options_.start_timeout_s = 1.5;
  add(R"([["hello"], ["address", "a"], ["message"], ["ready"], ["done"]])", true);
  add(R"([["hello"], ["load", 10, 0.2, 10], ["address", "b"], ["message"], ["ready"], ["done"]])",
      true);
  const Result<void> outcome = run();
  EXPECT_TRUE(outcome.ok()) << describe(outcome.error());
}

TEST_F(WorkerGroupStartTest, SaysHowFarOneWasThatDied) {
  add(R"([["hello"], ["load", 1, 0.1, 10], ["exit", 3]])", true);
  EXPECT_THAT(run_failing().what, EndsWith("status 3, before it was ready, loading: 10 %"));
}

TEST_F(WorkerGroupStartTest, TellsWorkersThatOthersGetOn) {
  options_.renewal_s = 0.05;
  add(R"([["leases", 3], ["done"]])");
  add(R"([["load", 10, 0.1, 10], ["done"]])");
  EXPECT_TRUE(run().ok());
}

TEST_F(WorkerGroupStartTest, TellsWorkersNothingOfTheKindWhereNobodyGetsOn) {
  options_.renewal_s = 0.05;
  options_.patience_s = 1;
  add(R"([["leases", 6], ["done"]])");  // getting ready causes some changes itself
  EXPECT_THAT(run_failing().what, HasSubstr("no heartbeat"));
}

// Leases are renewed on a separate thread, not the one that follows the workers.
TEST_F(WorkerGroupStartTest, RenewsLeasesWhileItIsBusyItself) {
  options_.renewal_s = 0.05;
  add(R"([["say", {"event": "trace"}], ["leases", 5], ["release", "FIFO"], ["done"]])");
  const std::string fifo = meeting_point();
  specs_[0].job.options["script"][2][1] = fifo;
  const Result<void> outcome = run([&](int, const Json&) -> Result<void> {
    std::ifstream met(fifo);  // open() returns once the worker has opened the other end
    return {};
  });
  EXPECT_TRUE(outcome.ok()) << describe(outcome.error());
}

TEST_F(WorkerGroupStartTest, SaysThatWorkersDoNotGoOnWithoutIt) {
  add(R"([["exit", 75]])");
  const Error error = run_failing();
  EXPECT_EQ(error.code, ErrorCode::kPeer);
  EXPECT_EQ(error.what, "stage 0 (test) ended because its lease expired, before its first step");
  EXPECT_THAT(error.cause, HasSubstr("received nothing from this program"));
}

TEST_F(WorkerGroupStartTest, TriesAgainWhereSshdIsTooBusy) {
  add(R"([["done"]])").machine.shell = {make_ssh(fmt::format(
      "if mkdir {0}/first 2>/dev/null || mkdir {0}/second 2>/dev/null; then\n"
      "  echo 'kex_exchange_identification: read: Connection reset by peer' >&2; exit 255\n"
      "fi\n"
      "exec sh -c \"${{@: -1}}\"\n",
      folder_.string()))};
  const Result<void> outcome = run();
  EXPECT_TRUE(outcome.ok()) << describe(outcome.error());
}

TEST_F(WorkerGroupStartTest, DoesNotTryAgainWhereSshdRefuses) {
  add(R"([["done"]])").machine.shell = {
      make_ssh("echo 'root@box: Permission denied (publickey).' >&2; exit 255\n")};
  EXPECT_THAT(run_failing().what, HasSubstr("did not start: ssh ended with status 255"));
}

// Like an sshd with MaxStartups 10:30:100, except that it drops every login beyond ten.
TEST_F(WorkerGroupStartTest, BringsUpMoreThanFortyThroughOneSshd) {
  const std::string ssh = make_ssh(fmt::format(
      "set -- \"${{@: -1}}\"\n"
      "mkdir -p {0}/logins; touch {0}/logins/$$\n"
      "if (($(ls {0}/logins | wc -l) > 10)); then rm {0}/logins/$$; touch {0}/dropped\n"
      "  echo 'kex_exchange_identification: read: Connection reset by peer' >&2; exit 255; fi\n"
      "sleep 0.1; rm {0}/logins/$$; exec sh -c \"$1\"\n",
      folder_.string()));
  for (int i = 0; i < 44; ++i) add(R"([["done"]])").machine.shell = {ssh, "box"};
  const Result<void> outcome = run();
  EXPECT_TRUE(outcome.ok()) << describe(outcome.error());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "dropped")) << "too many at once";
}

TEST_F(WorkerGroupStartTest, StartsMoreThanTheSoftLimitOfFilesAllows) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = 64, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  for (int i = 0; i < 30; ++i) add(R"([["done"]])");
  const Result<void> outcome = run();
  EXPECT_TRUE(outcome.ok()) << describe(outcome.error());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_F(WorkerGroupStartTest, RefusesALogThatIsAPipe) {
  add(R"([["pid"], ["done"]])");
  std::filesystem::create_directories(options_.log_folder);
  ASSERT_EQ(::mkfifo((options_.log_folder / "0.log").c_str(), 0600), 0);
  const Error error = run_failing();
  EXPECT_EQ(error.code, ErrorCode::kCorrupt);
  EXPECT_EQ(error.what, "cannot write " + (options_.log_folder / "0.log").string());
  EXPECT_EQ(error.cause, "it is not a regular file");
  EXPECT_TRUE(pids_.empty()) << "a worker was started";
}

TEST_F(WorkerGroupStartTest, AddsToNoLogThroughALink) {
  add(R"([["complain", "words"], ["done"]])");
  std::filesystem::create_directories(options_.log_folder);
  std::ofstream(folder_ / "notes") << "mine";
  std::filesystem::create_symlink(folder_ / "notes", options_.log_folder / "0.log");
  EXPECT_EQ(run_failing().cause, "it is not a regular file");
  EXPECT_EQ(log_of(0), "mine");
}

TEST_F(WorkerGroupStartTest, AddsToTheLogThatIsThere) {
  add(R"([["complain", "words"], ["done"]])");
  std::filesystem::create_directories(options_.log_folder);
  std::ofstream(options_.log_folder / "0.log") << "earlier\n";
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(log_of(0), "earlier\nwords\n");
}

}  // namespace
}  // namespace motley
