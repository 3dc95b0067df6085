// Every mistake in a cluster file is reported with line and column, cause and remedy.
#include <fmt/format.h>

#include <gmock/gmock.h>

#include "base/toml.h"
#include "plan/cluster.h"
#include "plan/cluster/cluster_file.h"

namespace motley {
namespace {

using ::testing::HasSubstr;

struct Mistake {
  std::string text;
  const char* place;    // "LINE:COLUMN"
  const char* message;  // part of the cause
};

void PrintTo(const Mistake& mistake, std::ostream* out) {
  *out << excerpt(mistake.text);
}

class ClusterMistake : public testing::TestWithParam<Mistake> {};

TEST_P(ClusterMistake, IsNamedWithItsPlace) {
  const auto cluster = parse_cluster(GetParam().text, "c.toml");
  ASSERT_FALSE(cluster.ok());
  const Error& error = cluster.error();
  EXPECT_EQ(error.code, ErrorCode::kConfig);
  EXPECT_TRUE(error.what.ends_with(fmt::format(", c.toml:{}", GetParam().place))) << error.what;
  EXPECT_THAT(error.cause, HasSubstr(GetParam().message));
  EXPECT_NE(error.remedy, "");
  EXPECT_LT(describe(error).size(), 1000U);
}

// Two machines, on lines 1 to 6.
std::string two(const std::string& rest) {
  return "[[machine]]\nname = 'a'\naddress = '10.0.0.1'\n"
         "[[machine]]\nname = 'b'\naddress = '10.0.0.2'\n" +
         rest;
}

std::string machine(const std::string& rest) {
  return "[[machine]]\nname = 'a'\n" + rest;
}

std::string network(const std::string& rest) {
  return "[network]\n" + rest;
}

std::string link(const std::string& rest) {
  return two("[[link]]\n" + rest);
}

// A machine with a virtual device, whose table begins on line 5.
std::string virtual_machine(const std::string& rest) {
  return machine("devices = ['virtual']\nmemory_gib = 8\n[machine.virtual]\n" + rest);
}

std::string repeated(std::size_t times, const std::string& text) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

INSTANTIATE_TEST_SUITE_P(
    Numbers,
    ClusterMistake,
    testing::Values(Mistake{network("bandwidth_mbps = 0"), "2:18", "it is 0; a number from 0.001"},
                    Mistake{network("bandwidth_mbps = -5"), "2:18", "it is -5;"},
                    Mistake{network("bandwidth_mbps = nan"), "2:18", "it is nan;"},
                    Mistake{network("bandwidth_mbps = inf"), "2:18", "it is inf;"},
                    Mistake{network("bandwidth_mbps = 1e300"), "2:18", "it is 1e+300;"},
                    Mistake{network("bandwidth_mbps = '9'"), "2:18", "a number from"},
                    Mistake{network("latency_us = -1"), "2:14", "it is -1;"},
                    Mistake{network("trusted = 1"), "2:11", "true or false"},
                    Mistake{machine("memory_gib = -0.5"), "3:14", "it is -0.5;"},
                    Mistake{machine("memory_gib = 1e300"), "3:14", "it is 1e+300;"},
                    Mistake{machine("threads = 1.5"), "3:11", "a whole number"},
                    Mistake{machine("threads = 9223372036854775807"), "3:11", "to 4096"},
                    Mistake{machine("cpu_share = nan"), "3:13", "it is nan;"}));

INSTANTIATE_TEST_SUITE_P(
    Names,
    ClusterMistake,
    testing::Values(Mistake{"[[machine]]\naddress = '10.0.0.1'", "1:1", "it has no name"},
                    Mistake{two(machine("")), "8:8", "two machines are named 'a'"},
                    Mistake{"[[machine]]\nname = 'a b'", "2:8", "letters, digits"},
                    Mistake{"[[machine]]\nname = ''", "2:8", "letters, digits"},
                    Mistake{"[[machine]]\nname = 7", "2:8", "a string was expected"},
                    Mistake{machine("adress = ''"), "3:10", "unknown key"},
                    Mistake{machine("address = 'host'"), "3:11", "numeric IP"},
                    Mistake{machine("devices = ['cpu', 'a b']"), "3:19",
                            "machine a: unknown kind of device 'a b'"},
                    Mistake{machine("devices = ['cpu', 'gpu']"), "3:19", "kind of device 'gpu'"},
                    Mistake{machine("devices = ['virtual:x']\nmemory_gib = 1\n"
                                    "[machine.virtual]\ngflops = 1"),
                            "3:12", "kind of device 'virtual:x'"},
                    Mistake{machine("devices = ['cpu', 3]"), "3:19", "a string was expected"},
                    Mistake{machine("devices = []"), "3:11", "no device"},
                    Mistake{machine("devices = 'cpu'"), "3:11", "a list of strings"},
                    Mistake{machine("ssh = ''"), "3:7", "not an ssh destination"},
                    Mistake{machine("ssh = 'b'\nshell = []"), "3:7", "exclude each other"},
                    Mistake{machine("motley_dir = \"a\\nb\""), "3:14", "one line"},
                    Mistake{machine("runs_dir = 'runs'"), "3:12", "not an absolute path"},
                    Mistake{"machine = 3", "1:11", "an array of tables"},
                    Mistake{"machine = [1]", "1:11", "an array of tables"},
                    Mistake{"network = 3", "1:11", "a table was expected"},
                    Mistake{"[[network]]\n[[machine]]\nname = 'a'", "1:1", "a table was expected"},
                    Mistake{two("[netwrok]"), "7:1", "unknown key"},
                    Mistake{"", "1:1", "no machine"}));

INSTANTIATE_TEST_SUITE_P(
    Links,
    ClusterMistake,
    testing::Values(Mistake{link("to = 'b'"), "7:1", "it has no 'from'"},
                    Mistake{link("from = 'a'"), "7:1", "it has no 'to'"},
                    Mistake{link("from = 'a'\nto = 'c'"), "9:6", "no machine is named 'c'"},
                    Mistake{link("from = 'a'\nto = 'a'"), "9:6", "both ends"},
                    Mistake{link("from = 'a'\nto = 2"), "9:6", "a string was expected"},
                    Mistake{link("from = 'a'\nto = 'b'\nbandwidth_mbps = 0"), "10:18", "it is 0;"},
                    Mistake{link("from = 'a'\nto = 'b'\n[[link]]\nfrom = 'a'\nto = 'b'"), "10:1",
                            "duplicate link"},
                    Mistake{two("[[machine]]\nname = 'c'"), "7:1", "no address that"}));

INSTANTIATE_TEST_SUITE_P(
    VirtualDevices,
    ClusterMistake,
    testing::Values(
        Mistake{machine("devices = ['virtual']"), "3:11", "have no speed"},
        Mistake{virtual_machine(""), "5:1", "no speed of a device"},
        Mistake{virtual_machine("tokens_per_s = 1\ngflops = 1"), "5:1", "exclude each other"},
        Mistake{virtual_machine("tokens_per_s = 0"), "6:16", "it is 0;"},
        Mistake{virtual_machine("gflops = nan"), "6:10", "it is nan;"},
        Mistake{virtual_machine("tokens_per_s = 'fast'"), "6:16", "a number from"},
        Mistake{virtual_machine("token_per_s = 1"), "6:15", "unknown key"},
        Mistake{machine("[machine.virtual]\ngflops = 1"), "3:1", "has no virtual device"},
        Mistake{machine("devices = ['cpu', 'virtual']\n[machine.virtual]\ngflops = 1"), "4:1",
                "also has other devices"},
        Mistake{machine("devices = ['virtual:0']\n[machine.virtual]\ngflops = 1"), "4:1",
                "no memory size"},
        Mistake{machine("virtual = 3"), "3:11", "a table was expected"},
        Mistake{virtual_machine("gflops = 1\n[[machine]]\nname = 'b'"), "7:1", "real devices"}));

INSTANTIATE_TEST_SUITE_P(
    Syntax,
    ClusterMistake,
    testing::Values(Mistake{machine("address = "), "3:11", "value"},
                    Mistake{machine("name = 'b'"), "3:8", "name"},
                    Mistake{"[[machine]", "1:11", "table"},
                    Mistake{machine("\u0299 = 1"), "3:1", "outside ASCII"},
                    Mistake{machine("address = '''a'''"), "3:11", "multi-line strings"},
                    Mistake{machine("address = 1979-05-27"), "3:11", "dates and times"},
                    Mistake{machine("address = '\xff'"), "3:11", "utf-8"}));

INSTANTIATE_TEST_SUITE_P(
    Sizes,
    ClusterMistake,
    testing::Values(
        Mistake{machine("motley_dir = '" + std::string(100'000, 'x') + "'"), "3:14", "one line of"},
        Mistake{"[[machine]]\nname = '" + std::string(100'000, 'x') + "'", "2:8", "one line of"},
        Mistake{machine(std::string(100'000, 'x') + " = 1"), "3:1", "longer than 100 bytes"},
        Mistake{link("from = '" + std::string(4000, 'x') + "'\nto = 'b'"), "8:8", "no machine is"},
        Mistake{machine(repeated(100'000, "a.") + "a = 1"), "3:18", "more than 8 parts"},
        Mistake{machine("devices = " + std::string(100, '[') + std::string(100, ']')), "3:17",
                "nested deeper"},
        Mistake{machine("devices = " + std::string(100'000, '[')), "3:267", "nest"},
        Mistake{repeated(5000, "[[machine]]\nname = 'a'\n"), "1:1", "5000 machines"},
        Mistake{machine("devices = [" + repeated(5000, "'cpu', ") + "]"), "3:11", "5000 devices"}));

TEST(ClusterSize, IsBounded) {
  const auto cluster = parse_cluster(std::string(kTomlBytesMax + 1, '\n'), "c.toml");
  ASSERT_FALSE(cluster.ok());
  EXPECT_EQ(cluster.error().code, ErrorCode::kConfig);
  EXPECT_THAT(cluster.error().cause, HasSubstr("larger than"));
}

TEST(ClusterSize, AllowsThousandsOfMachines) {
  std::string text;
  for (int m = 0; m < 4096; ++m) text += fmt::format("[[machine]]\nname = 'm{}'\n", m);
  const auto cluster = parse_cluster(text, "c.toml");
  ASSERT_TRUE(cluster.ok()) << describe(cluster.error());
  EXPECT_EQ(cluster->machines.size(), 4096U);
}

}  // namespace
}  // namespace motley
