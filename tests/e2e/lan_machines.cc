#include "e2e/lan_machines.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <gtest/gtest.h>

namespace motley::test {

bool shell(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;  // NOLINT(cert-env33-c)
}

void lan(const std::string& words) {
  EXPECT_TRUE(shell(MOTLEY_LAN " " + words)) << "scripts/lan " << words;
}

LanMachines::LanMachines(const std::string& words) {
  are_up_ = ::geteuid() == 0 && ::access("/run/netns/motley-sw", F_OK) != 0 &&
            shell("unshare --net true") && shell(MOTLEY_LAN " up -n 2 " + words);
}

LanMachines::~LanMachines() {
  if (are_up_) lan("down");
}

std::string LanMachines::cluster_text(bool trusted) {
  std::string text = fmt::format("[network]\ntrusted = {}\n", trusted);
  for (const int number : {1, 2}) {
    text += fmt::format(
        "[[machine]]\nname = \"m{0}\"\naddress = \"10.77.0.{0}\"\nthreads = 1\n"
        "shell = [\"{1}\", \"exec\", \"m{0}\"]\n",
        number, MOTLEY_LAN);
  }
  return text;
}

// The switch's port counts what the machine sends.
std::uint64_t LanMachines::sent_bytes(int number) {
  const std::string command = fmt::format(
      "ip netns exec motley-sw cat /sys/class/net/port-m{}/statistics/rx_bytes", number);
  std::unique_ptr<FILE, int (*)(FILE*)> said(::popen(command.c_str(), "r"), ::pclose);
  std::uint64_t bytes = 0;
  EXPECT_EQ(std::fscanf(said.get(), "%" SCNu64, &bytes), 1) << command;  // NOLINT(cert-err34-c)
  return bytes;
}

}  // namespace motley::test
