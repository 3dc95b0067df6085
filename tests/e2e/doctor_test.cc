// motley doctor on machines that are all this computer.
#include <signal.h>

#include <algorithm>

#include <gtest/gtest.h>

#include "base/json.h"
#include "e2e/motley_command.h"

namespace motley::test {
namespace {

std::string two_here(const std::string& second_address, const std::string& more = "") {
  return R"(
[[machine]]
name = "left"
address = "127.0.0.1"
[[machine]]
name = "right"
)" + ("address = \"" + second_address + "\"\n" + more);
}

std::vector<std::string> verdicts(const Json& report, const std::string& what) {
  std::vector<std::string> verdicts;
  for (const Json& finding : report.at("findings")) {
    if (finding.at("what") == what) verdicts.push_back(finding.at("verdict"));
  }
  return verdicts;
}

TEST(Doctor, FindsThisMachineFit) {
  const TemporaryFolder folder;
  const Outcome outcome = motley({"doctor", "--run", folder.path().string(), "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  const Json report = Json::parse(outcome.out);
  EXPECT_EQ(report.at("problems"), 0);
  EXPECT_EQ(verdicts(report, "version"), std::vector<std::string>{"ok"});
  EXPECT_EQ(verdicts(report, "run folder"), std::vector<std::string>{"ok"});
  EXPECT_GT(report.at("machines").at("local").at("cores").get<double>(), 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "the mark is still there";
}

// OpenBLAS uses its kernels of 2004 for an unknown processor (docs/decisions/0021).
TEST(Doctor, FindsKernelsForThisProcessor) {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "the processor has no AVX2";
#endif
  const TemporaryFolder folder;
  const Outcome outcome = motley({"doctor", "--run", folder.path().string(), "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  const auto blas =
      Json::parse(outcome.out).at("machines").at("local").at("blas").get<std::string>();
  EXPECT_FALSE(blas.ends_with("Prescott")) << blas;
}

TEST(Doctor, ConnectsTheMachinesAndSaysByWhat) {
  const TemporaryFolder folder;
  const std::string cluster = folder.write("cluster.toml", two_here("127.0.0.1"));
  const Outcome outcome =
      motley({"doctor", "--cluster", cluster, "--run", folder.path().string(), "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  const Json report = Json::parse(outcome.out);
  EXPECT_EQ(verdicts(report, "speed").size(), 2U);
  ASSERT_EQ(report.at("transports").size(), 1U);
  EXPECT_EQ(report.at("transports")[0].at("transport"), "tcp with TLS");
  EXPECT_EQ(outcome.err.find("info: transport"), std::string::npos) << "it stands in the table";
  const Json& addresses = report.at("addresses");
  EXPECT_TRUE(std::ranges::any_of(addresses, [](const Json& each) {
    return each.at("machine") == "left" && each.at("address") == "127.0.0.1" && each.at("taken");
  })) << addresses;
}

// The start of a worker may take long.
TEST(Doctor, SaysWhichMachinesItAsksBeforeTheyAnswer) {
  const TemporaryFolder folder;
  const std::string slow = folder.write("slow", "#!/bin/sh\ntouch \"$0.was-started\"\nsleep 60\n");
  std::filesystem::permissions(slow, std::filesystem::perms::owner_all);
  const std::string cluster =
      folder.write("cluster.toml", two_here("127.0.0.1", "shell = [\"" + slow + "\"]\n"));
  RunningMotley doctor({"doctor", "--cluster", cluster, "--run", folder.path().string()});
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(slow + ".was-started"); }));
  ASSERT_EQ(::kill(doctor.pid(), SIGINT), 0);
  const Outcome outcome = doctor.wait();
  EXPECT_EQ(outcome.status, 130);
  EXPECT_NE(outcome.err.find("querying left, right"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("motley: stopped: interrupted"), std::string::npos) << outcome.err;
}

TEST(Doctor, PrintsTheFixForAnAddressThatNobodyHas) {
  const TemporaryFolder folder;
  const std::string cluster =
      folder.write("cluster.toml", two_here("127.66.66.66", "shell = [\"env\"]\n"));
  const Outcome outcome = motley({"doctor", "--cluster", cluster, "--run", folder.path().string()});
  EXPECT_EQ(outcome.status, 4) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("no interface there has 127.66.66.66"), std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("PROBLEM"), std::string::npos);
  EXPECT_NE(outcome.err.find("a run would fail"), std::string::npos) << outcome.err;
}

TEST(Doctor, GoesOnWhenAMachineDoesNotAnswer) {
  const TemporaryFolder folder;
  const std::string cluster =
      folder.write("cluster.toml", two_here("127.0.0.1", "shell = [\"false\"]\n"));
  const Outcome outcome =
      motley({"doctor", "--cluster", cluster, "--run", folder.path().string(), "--json"});
  EXPECT_EQ(outcome.status, 4) << outcome.out << outcome.err;
  const Json report = Json::parse(outcome.out);
  EXPECT_EQ(verdicts(report, "start"), std::vector<std::string>{"PROBLEM"});
  EXPECT_EQ(verdicts(report, "version"), std::vector<std::string>{"ok"});
  EXPECT_TRUE(report.at("machines").at("right").is_null());
}

TEST(Doctor, RefusesARunFolderThatCannotBeWritten) {
  const Outcome outcome = motley({"doctor", "--run", "/proc/no-such-folder"});
  EXPECT_EQ(outcome.status, 7) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("--run"), std::string::npos) << outcome.out;
}

}  // namespace
}  // namespace motley::test
