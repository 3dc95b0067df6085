// motley launch --from-env, started by scripts that set the variables of torchrun: two machines on
// this computer, the second one with two processes.
#include <fmt/format.h>
#include <signal.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/small_job.h"

namespace motley::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

constexpr const char* kSecret = "MOTLEY_SECRET=c2VjcmV0IG9mIGEgdGVzdCBvbmx5";

std::string entry(const std::string& name) {
  return fmt::format("[[machine]]\nname = \"{}\"\naddress = \"127.0.0.1\"\nthreads = 1\n", name);
}

class FromEnv : public testing::Test {
 protected:
  // Settings with the same rounding for any assignment of layers, on both machines.
  [[nodiscard]] static Words settings() {
    Words words = SmallJob::measured_with({"profile.seconds=1"}, entry("desk") + entry("box"));
    for (const char* setting : {"train.steps=30", "checkpoint.every=10", "parallel.replicas=false",
                                "compression.activations=none", "checkpoint.copies=0"}) {
      words.insert(words.end(), {"--set", setting});
    }
    words.insert(words.end(), {"--pin", "always desk", "--pin", "always box"});
    return words;
  }

  // Process `rank` of three: 0 is on desk, 1 and 2 are on box.
  [[nodiscard]] std::unique_ptr<RunningMotley> start(int rank,
                                                     const Words& more,
                                                     const std::string& variables = "") const {
    const std::string machine = rank == 0 ? "desk" : "box";
    Words words = job_.train_words("run", settings());
    words.front() = "launch";
    words.push_back("--from-env");
    words.insert(words.end(), more.begin(), more.end());
    const std::string script = job_.folder().write(
        fmt::format("process{}", rank),
        fmt::format("#!/bin/sh\n"
                    "export RANK={} WORLD_SIZE=3 LOCAL_RANK={} LOCAL_WORLD_SIZE={}\n"
                    "export MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 SLURMD_NODENAME={}\n"
                    "export {}\n"
                    "exec {} \"$@\"\n",
                    rank, rank == 2 ? 1 : 0, rank == 0 ? 1 : 2, machine, variables,
                    MOTLEY_PROGRAM));
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    return std::make_unique<RunningMotley>(words, script, job_.folder() / (machine + "-cache"));
  }

  [[nodiscard]] std::vector<std::unique_ptr<RunningMotley>> start_all(
      const Words& more, const std::string& variables = "") const {
    std::vector<std::unique_ptr<RunningMotley>> processes;
    for (const int rank : {0, 1, 2}) processes.push_back(start(rank, more, variables));
    return processes;
  }

  SmallJob job_;
};

TEST_F(FromEnv, TrainsAndContinuesByTheSameCommand) {
  Words local = settings();
  local.insert(local.end(),
               {"--cluster", job_.folder().write("all.toml", entry("desk") + entry("box"))});
  const Outcome whole = job_.train("local", local);
  ASSERT_EQ(whole.status, 0) << whole.err;
  // They find each other in the run's folder.
  for (const auto& process : start_all({"--stop-after", "10"})) {
    const Outcome outcome = process->wait();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  }
  EXPECT_FALSE(std::filesystem::exists(job_.folder() / "run/invitation"));
  // By a secret, at a port of their own.
  const auto processes = start_all({"--listen", "29641"}, kSecret);
  const Outcome head = processes[0]->wait();
  ASSERT_EQ(head.status, 0) << head.err;
  EXPECT_THAT(head.err, AllOf(HasSubstr("box has joined from 127.0.0.1 (2 of 2)"),
                              Not(HasSubstr("starts with step 1"))));
  EXPECT_THAT(head.out, HasSubstr("resuming after step 10"));
  const Outcome joined = processes[1]->wait();
  EXPECT_EQ(joined.status, 0) << joined.err;
  EXPECT_THAT(joined.err, HasSubstr("joined as box"));
  const Outcome waited = processes[2]->wait();
  EXPECT_EQ(waited.status, 0) << waited.err;
  EXPECT_THAT(waited.err, HasSubstr("waits for the process that joins for this machine"));
  EXPECT_EQ(job_.parameter_hash("run", 30), job_.parameter_hash("local", 30));
  // The secret is in no file of the run or of the machines; the scripts have it.
  const std::string secret = std::string(kSecret).substr(std::string("MOTLEY_SECRET=").size());
  for (const auto& file : std::filesystem::recursive_directory_iterator(job_.folder().path())) {
    if (!file.is_regular_file() || file.path().filename().string().starts_with("process")) continue;
    EXPECT_THAT(read_text(file.path()), Not(HasSubstr(secret))) << file.path();
  }
}

TEST_F(FromEnv, EndsWithTheStatusOfTheRun) {
  const auto processes = start_all({"--set", "train.steps=5000"});
  const std::string metrics = job_.run_dir("run") + "/metrics.jsonl";
  ASSERT_TRUE(eventually([&] {
    return std::filesystem::exists(metrics) && read_text(metrics).find('\n') != std::string::npos;
  })) << processes[0]->reported();
  ::kill(processes[0]->pid(), SIGTERM);  // process 0 alone
  for (const auto& process : processes) {
    const Outcome outcome = process->wait();
    EXPECT_EQ(outcome.status, 143) << outcome.err;
  }
}

TEST_F(FromEnv, RefusesAnotherSecretAndAnotherNumberOfProcesses) {
  const Words port = {"--listen", "29642"};
  const auto head = start(0, port, kSecret);
  ASSERT_TRUE(eventually([&] { return head->reported().find("waits") != std::string::npos; }));
  const Outcome other = start(1, port, "MOTLEY_SECRET=another-one-of-many-bytes")->wait();
  EXPECT_EQ(other.status, 5) << other.err;
  const Outcome fewer = start(1, port, std::string(kSecret) + " WORLD_SIZE=4")->wait();
  EXPECT_EQ(fewer.status, 5) << fewer.err;
  EXPECT_THAT(fewer.err, HasSubstr("its launcher announces 4 processes, that of process 0 3"));
}

TEST_F(FromEnv, NamesTheMistakeBeforeAnythingStarts) {
  const Outcome none = start(0, {}, "RANK=")->wait();
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.err, HasSubstr("no launcher of processes has started this one"));
  const Outcome brief = start(1, {}, "MOTLEY_SECRET=1234")->wait();
  EXPECT_EQ(brief.status, 2);
  EXPECT_THAT(brief.err, AllOf(HasSubstr("fewer than 16"), Not(HasSubstr("1234"))));
}

}  // namespace
}  // namespace motley::test
