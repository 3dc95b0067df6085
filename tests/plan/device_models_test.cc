// The table of common devices, and clusters that name them.
#include "plan/cluster/device_models.h"

#include <fmt/format.h>

#include <fstream>
#include <set>
#include <sstream>

#include <gmock/gmock.h>

#include "plan/cluster.h"
#include "plan/cluster/cluster_file.h"

namespace motley {
namespace {

using ::testing::HasSubstr;

std::string text_of(const char* path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string machine(const std::string& rest) {
  return "[[machine]]\nname = 'a'\n" + rest;
}

Result<Machine> read_one(const std::string& rest) {
  MOTLEY_ASSIGN(const Cluster cluster, parse_cluster(machine(rest), "c.toml"));
  return cluster.machines.front();
}

// The documentation page has exactly one row for each device, with its figures.
TEST(DeviceModels, AreThoseOfTheirPage) {
  const std::string page = text_of(MOTLEY_DEVICES_PAGE);
  std::set<std::string_view> names;
  for (const DeviceModel& model : device_models()) {
    EXPECT_TRUE(names.insert(model.name).second) << model.name;
    const std::string memory =
        model.memory_gib > 0 ? fmt::format("{:g}", model.memory_gib) : std::string("-");
    EXPECT_THAT(page, HasSubstr(fmt::format("\n| `{}` | {:.0f} | {} | ", model.name, model.gflops,
                                            memory)));
  }
  std::size_t rows = 0;
  for (std::size_t at = page.find("\n| `"); at != std::string::npos;
       at = page.find("\n| `", at + 1)) {
    ++rows;
  }
  EXPECT_EQ(rows, names.size() + 1);  // plus the heading
}

TEST(DeviceModels, FillInWhatTheFileLeavesOut) {
  const auto read = read_one("device_model = 'rtx-3060'\n");
  ASSERT_TRUE(read.ok()) << describe(read.error());
  EXPECT_EQ(read->devices, std::vector<std::string>{"virtual"});
  EXPECT_EQ(read->memory_gib, 12);
  EXPECT_EQ(read->virtual_speed, (VirtualSpeed{.gflops = 4200}));
  const auto two = read_one("device_model = 'rtx-3060'\ndevices = ['virtual', 'virtual']\n");
  ASSERT_TRUE(two.ok()) << describe(two.error());
  EXPECT_EQ(two->memory_gib, 24);
}

TEST(DeviceModels, GiveWayToWhatTheFileSays) {
  const auto memory = read_one("device_model = 'rtx-3060'\nmemory_gib = 6\n");
  ASSERT_TRUE(memory.ok()) << describe(memory.error());
  EXPECT_EQ(memory->memory_gib, 6);
  const auto speed = read_one("device_model = 'rtx-3060'\n[machine.virtual]\ntokens_per_s = 7\n");
  ASSERT_TRUE(speed.ok()) << describe(speed.error());
  EXPECT_EQ(speed->virtual_speed, (VirtualSpeed{.tokens_per_s = 7}));
  EXPECT_EQ(speed->memory_gib, 12);
}

TEST(DeviceModels, MistakesAreNamedWithTheirPlace) {
  const auto unknown = read_one("device_model = 'rtx-3600'\n");
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().what, HasSubstr("c.toml:3"));
  EXPECT_THAT(unknown.error().remedy, HasSubstr("did you mean 'rtx-30"));
  const auto cut_short = read_one("device_model = 'gtx-1080'\n");
  ASSERT_FALSE(cut_short.ok());
  EXPECT_THAT(cut_short.error().remedy, HasSubstr("did you mean 'gtx-1080-ti'"));
  for (const char* spelt : {"RTX 3090", "rtx3090", "NVIDIA GeForce RTX 3090"}) {
    EXPECT_EQ(closest_device_model(spelt), "rtx-3090") << spelt;
  }
  EXPECT_EQ(closest_device_model("Apple M2 Max"), "apple-m2-max");
  EXPECT_EQ(closest_device_model("h100"), "h100-pcie");
  EXPECT_EQ(closest_device_model("m2"), "apple-m2");
  EXPECT_EQ(closest_device_model("abacus"), "");
  const auto memory = read_one("device_model = 'apple-m2'\n");
  ASSERT_FALSE(memory.ok());
  EXPECT_THAT(memory.error().remedy, HasSubstr("memory_gib"));
  const auto real = read_one("device_model = 'rtx-3060'\ndevices = ['cpu']\n");
  ASSERT_FALSE(real.ok());
  EXPECT_THAT(real.error().remedy, HasSubstr("devices = [\"virtual\"]"));
}

constexpr const char* kMixed =
    "[[machine]]\nname = 'real'\naddress = '10.0.0.1'\n"
    "[[machine]]\nname = 'dream'\naddress = '10.0.0.2'\ndevice_model = 'rtx-3060'\n";

TEST(MixedClusters, AreForPlansOnly) {
  const auto refused = parse_cluster(kMixed, "c.toml");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().cause, HasSubstr("'real' has real devices and 'dream' virtual ones"));
  EXPECT_THAT(refused.error().remedy, HasSubstr("only motley plan"));
  const auto taken = parse_cluster(kMixed, "c.toml", {}, Mixture::kAllowed);
  ASSERT_TRUE(taken.ok()) << describe(taken.error());
  EXPECT_TRUE(is_mixed(*taken));
  EXPECT_EQ(taken->machines[1].address, "");
  EXPECT_TRUE(taken->machines[1].shell.empty());
  EXPECT_EQ(taken->machines[0].address, "10.0.0.1");
}

TEST(MixedClusters, HaveAnExample) {
  const auto cluster =
      parse_cluster(text_of(MOTLEY_DREAM_EXAMPLE), MOTLEY_DREAM_EXAMPLE, {}, Mixture::kAllowed);
  ASSERT_TRUE(cluster.ok()) << describe(cluster.error());
  EXPECT_TRUE(is_mixed(*cluster));
}

}  // namespace
}  // namespace motley
