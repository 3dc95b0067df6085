// Workers behind real sshds whose launcher is cut off from them, or whose sshd hangs: they receive
// no end of file, and exit nevertheless (docs/failures.md). Skipped without root, namespaces and
// sshd, or if a LAN is up already.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "e2e/lan_machines.h"
#include "e2e/small_job.h"

namespace motley::test {
namespace {

using testing::HasSubstr;

constexpr double kLeaseBehindSsh_s = 9;  // channel_patience_s() of 4 s
constexpr double kSlack_s = 4;           // for the ends of processes, and for a busy machine

// The output of a shell command.
std::string output_of(const std::string& command) {
  std::string text;
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  char block[1 << 12];
  while (const std::size_t count = std::fread(block, 1, sizeof block, pipe))
    text.append(block, count);
  ::pclose(pipe);
  return text;
}

// Processes on a machine with this word in their command line.
std::vector<pid_t> processes_on(const char* machine, const std::string& word) {
  std::vector<pid_t> found;
  std::istringstream pids(output_of(fmt::format("ip netns pids motley-{}", machine)));
  for (pid_t pid = 0; pids >> pid;) {
    const std::string line = read_text(fmt::format("/proc/{}/cmdline", pid));
    if (line.find(word) != std::string::npos) found.push_back(pid);
  }
  return found;
}

// The launcher reaches m2 and m3 through m1, by ssh.
class Orphans : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    machines_ = std::make_unique<LanMachines>("-n 3 --mbps 1000");
    if (!machines_->are_up() || !shell("command -v sshd")) return;
    for (const char* machine : {"m2", "m3"}) lan(fmt::format("sshd {}", machine));
  }

  static void TearDownTestSuite() { machines_.reset(); }

  void SetUp() override {
    if (!machines_->are_up()) GTEST_SKIP() << "needs root and a LAN of its own (scripts/lan)";
    if (!shell("command -v sshd")) GTEST_SKIP() << "needs sshd";
    run_ = std::make_unique<RunningMotley>(words());
    ASSERT_TRUE(eventually([&] { return read_text(run_folder() / "metrics.jsonl").size() > 1000; }))
        << run_->wait().err;
    for (const char* machine : {"m2", "m3"}) {
      for (const pid_t pid : processes_on(machine, "motley-stage")) workers_.push_back(pid);
    }
    ASSERT_GE(workers_.size(), 2U);
  }

  void TearDown() override {
    if (!machines_->are_up()) return;
    EXPECT_TRUE(shell("ip -n motley-sw link set port-m1 up"));
  }

  [[nodiscard]] std::filesystem::path run_folder() const { return job_.run_dir("run"); }

  [[nodiscard]] std::vector<std::string> words() const {
    std::string text = "[network]\ntrusted = true\n";
    for (const int number : {2, 3}) {
      text += fmt::format(
          "[[machine]]\nname = \"m{0}\"\naddress = \"10.77.0.{0}\"\nthreads = 1\n"
          "shell = [\"ssh\", \"-F\", \"/run/motley-lan/sshd-m{0}/ssh_config\", \"m{0}\"]\n",
          number);
    }
    auto words =
        job_.train_words("run", {"--cluster", job_.folder().write("cluster.toml", text), "--pin",
                                 "always m2", "--pin", "always m3", "--set", "train.steps=1000000",
                                 "--set", "checkpoint.every=20", "--set", "comm.patience_s=4"});
    words.front() = "launch";
    std::ranges::copy(SmallJob::measured_with({}, text), std::back_inserter(words));
    return words;
  }

  void expect_all_gone_since(double lost_at_s) const {
    EXPECT_TRUE(eventually([&] {
      return std::ranges::none_of(workers_, [](pid_t pid) { return process_exists(pid); });
    }));
    const double took_s = now_s() - lost_at_s;
    std::printf("all workers gone after %.1f s\n", took_s);
    EXPECT_LT(took_s, kLeaseBehindSsh_s + kSlack_s);
  }

  static inline std::unique_ptr<LanMachines> machines_;
  SmallJob job_;
  std::unique_ptr<RunningMotley> run_;
  std::vector<pid_t> workers_;
};

TEST_F(Orphans, EndWhenTheMachineOfTheLauncherIsCutOff) {
  const double cut_at_s = now_s();
  ASSERT_TRUE(shell("ip -n motley-sw link set port-m1 down"));
  expect_all_gone_since(cut_at_s);
  const Outcome outcome = run_->wait();
  EXPECT_EQ(outcome.status, 4) << outcome.err;
  std::printf("%s\n", outcome.err.substr(outcome.err.find("motley: error")).c_str());
  // The first reports the expired lease; the other may lose its peer before its own lease expires.
  EXPECT_THAT(read_text(run_folder() / "log" / "0.log") + read_text(run_folder() / "log" / "1.log"),
              HasSubstr("no message from the launcher"));
  // No process remains that could write.
  const auto listing = [&] {
    return output_of("ls -R " + (run_folder() / "checkpoints").string());
  };
  const std::string left = listing();
  for (int i = 0; i < 200; ++i) short_pause();
  EXPECT_EQ(listing(), left);
}

TEST_F(Orphans, EndWhenTheSshdBeforeThemHangs) {
  const std::vector<pid_t> sshds = processes_on("m2", "sshd: root");
  ASSERT_FALSE(sshds.empty());
  const double hung_at_s = now_s();
  for (const pid_t pid : sshds) ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  expect_all_gone_since(hung_at_s);
  for (const pid_t pid : sshds) ::kill(pid, SIGCONT);
  EXPECT_EQ(run_->wait().status, 4);
}

}  // namespace
}  // namespace motley::test
