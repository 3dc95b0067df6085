// More workers than a real sshd with its default MaxStartups 10:30:100 accepts at once. Skipped
// without root and sshd.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/cluster/worker_group_fixture.h"

namespace motley {
namespace {

using Words = std::vector<std::string>;

constexpr int kPort = 22'977;

bool shell(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;  // NOLINT(cert-env33-c)
}

class SshdTest : public WorkerGroupFixture {
 protected:
  void SetUp() override {
    if (::geteuid() != 0 || !shell("command -v sshd")) GTEST_SKIP() << "needs root and sshd";
    const std::string dir = folder_.string();
    ASSERT_TRUE(shell("install -d -m 755 /run/sshd"));
    ASSERT_TRUE(
        shell(fmt::format("ssh-keygen -q -t ed25519 -N '' -f {0}/host_key && "
                          "ssh-keygen -q -t ed25519 -N '' -f {0}/user_key && "
                          "cp {0}/user_key.pub {0}/authorized_keys",
                          dir)));
    std::ofstream(folder_ / "sshd_config") << fmt::format(
        "ListenAddress 127.0.0.1:{1}\nHostKey {0}/host_key\nAuthorizedKeysFile "
        "{0}/authorized_keys\n"
        "PermitRootLogin prohibit-password\nStrictModes no\nUsePAM no\nPidFile {0}/sshd.pid\n",
        dir, kPort);
    std::ofstream(folder_ / "ssh_config") << fmt::format(
        "Host box\nHostName 127.0.0.1\nPort {1}\nUser root\nIdentityFile {0}/user_key\n"
        "IdentitiesOnly yes\nStrictHostKeyChecking no\nUserKnownHostsFile {0}/known_hosts\n"
        "BatchMode yes\n",
        dir, kPort);
    ASSERT_TRUE(shell(fmt::format("$(command -v sshd) -f {0}/sshd_config -E {0}/sshd.log", dir)));
    // sshd's parent exits before it listens; it writes the pid file after it listens.
    for (int i = 0; i < 1000 && !std::filesystem::exists(folder_ / "sshd.pid"); ++i)
      ::usleep(10'000);
    ASSERT_TRUE(std::filesystem::exists(folder_ / "sshd.pid"));
  }

  void TearDown() override {
    // sshd removes its pid file when it ends; the test must not remove it earlier.
    std::ifstream file(folder_ / "sshd.pid");
    pid_t pid = 0;
    if (!(file >> pid)) return;
    ::kill(pid, SIGTERM);
    for (int i = 0; i < 500 && std::filesystem::exists(folder_ / "sshd.pid"); ++i) ::usleep(10'000);
  }
};

TEST_F(SshdTest, LetsMoreThanFortyWorkersIn) {
  for (int i = 0; i < 48; ++i) {
    add(R"([["done"]])").machine.shell = {"ssh", "-F", (folder_ / "ssh_config").string(), "box"};
  }
  const Result<void> outcome = run();
  EXPECT_TRUE(outcome.ok()) << describe(outcome.error());
  EXPECT_EQ(done_.size(), 48U);
}

TEST_F(SshdTest, KnowsAKilledWorkerFromALoginThatFailed) {
  const Words through = {"ssh", "-F", (folder_ / "ssh_config").string(), "box"};
  add(R"([["beat", 12, "forward of micro-batch 3"], ["kill", 9]])").machine.shell = through;
  const Error killed = run_failing();
  EXPECT_THAT(killed.what, testing::StartsWith("stage 0 (test) was killed on machine test, "));
  EXPECT_THAT(killed.remedy, testing::Not(testing::HasSubstr("password")));
  std::filesystem::remove(folder_ / "authorized_keys");
  const Error refused = run_failing();
  EXPECT_THAT(refused.what, testing::HasSubstr("did not start: ssh ended with status 255"));
  EXPECT_THAT(refused.remedy, testing::HasSubstr("password"));
}

}  // namespace
}  // namespace motley
