#include "plan/cluster.h"

#include <gmock/gmock.h>

#include "base/result.h"
#include "base/system/files.h"
#include "plan/cluster/cluster_file.h"
#include "tests/support/property.h"

namespace motley {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTwo = R"([network]
bandwidth_mbps = 100
trusted = true
[[machine]]
name = "fast"
address = "10.0.0.1"
shell = []
devices = ["cpu", "cuda:0"]
memory_gib = 8
[[machine]]
name = "slow"
address = "10.0.0.2"
cpu_share = 0.5
[[link]]
from = "slow"
to = "fast"
bandwidth_mbps = 20
)";

std::string error_of(const std::string& text) {
  const auto cluster = parse_cluster(text, "c.toml");
  if (cluster.ok()) return "accepted";
  EXPECT_EQ(cluster.error().code, ErrorCode::kConfig);
  return describe(cluster.error());
}

std::string machine(const std::string& rest) {
  return "[[machine]]\nname = \"a\"\n" + rest + "\n";
}

TEST(ParseCluster, ReadsMachinesAndLinks) {
  const auto cluster = parse_cluster(kTwo, "c.toml");
  ASSERT_TRUE(cluster.ok()) << describe(cluster.error());
  EXPECT_EQ(cluster->machines[0].devices, (std::vector<std::string>{"cpu", "cuda:0"}));
  EXPECT_EQ(cluster->machines[1].cpu_share, 0.5);
  EXPECT_TRUE(cluster->trusted);
  EXPECT_EQ(cluster->link("fast", "slow").bandwidth_bytes_per_s, 100e6 / 8);
  EXPECT_EQ(cluster->link("slow", "fast").bandwidth_bytes_per_s, 20e6 / 8);
  EXPECT_EQ(cluster->link("slow", "fast").latency_s, cluster->network.latency_s);
  EXPECT_EQ(cluster->link("fast", "fast"), cluster->local);
}

TEST(ParseCluster, TakesACableForNoMedium) {
  const auto medium_of = [](const std::string& word) {
    const auto cluster = parse_cluster(machine("medium = '" + word + "'"), "c.toml");
    return cluster.ok() ? cluster->machines[0].medium : describe(cluster.error());
  };
  EXPECT_EQ(medium_of("cable"), "");
  EXPECT_EQ(medium_of("Cable"), "");
  EXPECT_EQ(medium_of("WiFi"), "wifi");
  EXPECT_EQ(medium_of("home.5GHz"), "home.5ghz");
  for (const char* other : {"ethernet", "Ethernet", "lan", "wired", "none"}) {
    EXPECT_THAT(medium_of(other), HasSubstr("write cable, or leave medium out"));
  }
}

TEST(ParseCluster, ReadsVirtualDevices) {
  const auto cluster = parse_cluster(machine("devices = [\"virtual:0\", \"virtual:1\"]\n"
                                             "memory_gib = 48\n[machine.virtual]\n"
                                             "tokens_per_s = 60_000"),
                                     "c.toml");
  ASSERT_TRUE(cluster.ok()) << describe(cluster.error());
  EXPECT_FALSE(capabilities_of(*cluster).computes);
  EXPECT_EQ(cluster->machines[0].virtual_speed, (VirtualSpeed{.tokens_per_s = 60'000}));
  EXPECT_TRUE(capabilities_of(*parse_cluster(kTwo, "c.toml")).computes);
}

TEST(ParseCluster, ReadsTheExampleOfVirtualDevices) {
  const auto text = read_file(MOTLEY_VIRTUAL_EXAMPLE);
  ASSERT_TRUE(text.ok()) << describe(text.error());
  const auto cluster = parse_cluster(*text, MOTLEY_VIRTUAL_EXAMPLE);
  ASSERT_TRUE(cluster.ok()) << describe(cluster.error());
  EXPECT_FALSE(capabilities_of(*cluster).computes);
}

TEST(ParseCluster, StartsRemoteMachinesOverSshUnlessToldOtherwise) {
  const auto cluster = parse_cluster(kTwo, "c.toml");
  ASSERT_TRUE(cluster.ok());
  EXPECT_TRUE(cluster->machines[0].shell.empty());
  EXPECT_EQ(cluster->machines[1].shell,
            (std::vector<std::string>{"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-T",
                                      "10.0.0.2"}));
  EXPECT_EQ(parse_cluster(machine("ssh = \"me@a\""), "c")->machines[0].shell.back(), "me@a");
  EXPECT_TRUE(parse_cluster(machine("address = \"127.0.0.1\""), "c")->machines[0].shell.empty());
}

TEST(ParseCluster, StartsThisMachineHereByItsAddress) {
  const LocalMachine here{"desk", {"127.0.0.1", "192.168.1.10", "2001:db8::1"}};
  const auto place = [&](const std::string& lines) {
    const auto cluster = parse_cluster(machine(lines), "c.toml", here);
    return cluster.ok() ? starting_folder(cluster->machines.front()) : describe(cluster.error());
  };
  EXPECT_EQ(place("address = \"192.168.1.10\""), "here");
  EXPECT_EQ(place("address = \"192.168.1.11\""), "by `ssh 192.168.1.11`");
  EXPECT_EQ(place("address = \"2001:DB8:0::1\""), "here") << "another way to write it";
  EXPECT_EQ(place("address = \"127.0.1.1\""), "here");
  EXPECT_EQ(place("address = \"localhost\""), "here");
  EXPECT_EQ(place("address = \"desk\""), "here");
  EXPECT_THAT(place("address = \"oldbox\""), HasSubstr("numeric IP"));
  EXPECT_EQ(place("address = \"192.168.1.10\"\nssh = \"me@desk\""), "by `ssh me@desk`");
  EXPECT_EQ(place("address = \"192.168.1.10\"\nshell = [\"nsenter\", \"-n\"]"), "by `nsenter -n`");
}

TEST(ParseCluster, StartsTheExamplesFirstMachineWithoutAnyShell) {
  const auto text = read_file(MOTLEY_CLUSTER_EXAMPLE);
  ASSERT_TRUE(text.ok()) << describe(text.error());
  const auto cluster = parse_cluster(*text, "example", LocalMachine{"desktop", {"192.168.1.10"}});
  ASSERT_TRUE(cluster.ok()) << describe(cluster.error());
  for (const Machine& machine : cluster->machines) {
    EXPECT_EQ(machine.shell.empty(), machine.name == "desktop");
  }
}

TEST(ParseCluster, SaysWhereAnUnknownKeyStandsAndWhatWasMeant) {
  EXPECT_THAT(error_of(machine("adress = \"10.0.0.1\"")), HasSubstr("c.toml:3:"));
  EXPECT_THAT(error_of(machine("adress = \"10.0.0.1\"")), HasSubstr("did you mean 'address'?"));
  EXPECT_THAT(error_of(machine("") + "[netwrok]"), HasSubstr("did you mean 'network'?"));
}

TEST(ParseCluster, RefusesWrongTypesAndRanges) {
  EXPECT_THAT(error_of(machine("threads = \"2\"")), HasSubstr("whole number"));
  EXPECT_THAT(error_of(machine("memory_gib = -1")), HasSubstr("a number from 0"));
  EXPECT_THAT(error_of(machine("memory_gib = nan")), HasSubstr("a number from 0"));
  EXPECT_THAT(error_of(machine("devices = \"cpu\"")), HasSubstr("list of strings"));
  EXPECT_THAT(error_of(machine("devices = []")), HasSubstr("no device"));
  EXPECT_THAT(error_of(machine("address = \"my-host\"")), HasSubstr("numeric IP"));
  EXPECT_THAT(error_of("machine = 3"), HasSubstr("[[machine]]"));
  EXPECT_THAT(error_of("[[machine]]\nname = \"a b\""), HasSubstr("letters, digits"));
  EXPECT_THAT(error_of("[[machine]]\nthreads = 1"), HasSubstr("no name"));
  EXPECT_THAT(error_of(""), HasSubstr("no machine"));
}

TEST(ParseCluster, RefusesContradictions) {
  EXPECT_THAT(error_of(machine("") + machine("")), HasSubstr("two machines are named 'a'"));
  EXPECT_THAT(error_of(machine("ssh = \"b\"\nshell = [\"sh\"]")), HasSubstr("keep one of them"));
  EXPECT_THAT(error_of(machine("ssh = \"-oProxyCommand=x\"")), HasSubstr("not an ssh destination"));
  EXPECT_THAT(error_of(std::string(kTwo) + "[[link]]\nfrom = \"slow\"\nto = \"fats\""),
              HasSubstr("did you mean 'fast'?"));
  EXPECT_THAT(error_of(std::string(kTwo) + "[[link]]\nfrom = \"slow\"\nto = \"fast\""),
              HasSubstr("duplicate link"));
  EXPECT_THAT(error_of(std::string(kTwo) + machine("")), HasSubstr("no address that"));
}

TEST(ParseCluster, TakesAutomaticDevicesAlone) {
  const auto cluster = parse_cluster(machine("devices = [\"auto\"]"), "test");
  ASSERT_TRUE(cluster.ok()) << describe(cluster.error());
  EXPECT_TRUE(has_automatic_devices(cluster->machines.front()));
  EXPECT_FALSE(has_automatic_devices(local_cluster(1).machines.front()));
  for (const char* devices : {R"("auto", "cpu")", R"("cuda:0", "auto")", R"("auto", "auto")"}) {
    EXPECT_THAT(error_of(machine(std::string("devices = [") + devices + "]")),
                HasSubstr("devices = [\"auto\"]"));
  }
  EXPECT_THAT(error_of(machine("device_model = \"rtx-3060\"\ndevices = [\"auto\"]")),
              HasSubstr("virtual"));
}

TEST(ClusterCapabilities, AreThoseThatAllMachinesHave) {
  Cluster cluster = automatic_cluster(1);
  EXPECT_EQ(capabilities_of(cluster), DeviceCapabilities{});
  EXPECT_FALSE(is_mixed(cluster));
  Machine& imagined = cluster.machines.emplace_back();
  imagined.devices = {"virtual", "virtual:1"};
  EXPECT_EQ(capabilities_of(imagined), capabilities_of("virtual"));
  EXPECT_EQ(capabilities_of(cluster), capabilities_of("virtual"));
  EXPECT_TRUE(is_mixed(cluster));
  cluster.machines.erase(cluster.machines.begin());
  EXPECT_FALSE(is_mixed(cluster));
  EXPECT_EQ(capabilities_of(Cluster{}), DeviceCapabilities{});
}

RC_GTEST_PROP(ParseCluster, SurvivesDamage, ()) {
  std::string text = kTwo;
  text[*rc::gen::inRange<std::size_t>(0, text.size())] = *rc::gen::arbitrary<char>();
  const auto cluster = parse_cluster(text, "c.toml");
  if (!cluster.ok()) RC_ASSERT(cluster.error().code == ErrorCode::kConfig);
}

}  // namespace
}  // namespace motley
