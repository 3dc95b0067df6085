// A sample of scripts/network-battery: three machines reached by ssh, with network failures.
// Skipped without the necessary privileges.
#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace motley::test {
namespace {

// Its exit status; its measurements are printed.
int battery(const std::string& parts) {
  const std::string command = std::string(MOTLEY_SOURCE_DIR "/scripts/network-battery ") + parts +
                              " --build " MOTLEY_BUILD_DIR " --steps 120 --prefix svtest 2>&1";
  const int status = std::system(command.c_str());  // NOLINT(cert-env33-c)
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class NetworkBattery : public testing::TestWithParam<const char*> {};

TEST_P(NetworkBattery, Holds) {
  const int status = battery(GetParam());
  if (status == 2) GTEST_SKIP() << "needs root, namespaces, sshd and nft";
  EXPECT_EQ(status, 0);
}

// A machine naps or loses its link, the launcher loses its network, a machine fails or is
// restarted, a firewall blocks, a path between two machines is dead.
INSTANTIATE_TEST_SUITE_P(
    ,
    NetworkBattery,
    testing::Values("nap-5 cut-15", "outage-15", "dies", "reboot", "firewall-in reject", "apart"));

}  // namespace
}  // namespace motley::test
