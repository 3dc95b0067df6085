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

// As in the table: the rate of both dtypes, or that of one with its name.
std::string half_text(const DeviceModel& model) {
  switch (model.half_types) {
    case HalfTypes::kNone:
      return "-";
    case HalfTypes::kBf16:
      return fmt::format("{:.0f} (bf16)", model.half_gflops);
    case HalfTypes::kFp16:
      return fmt::format("{:.0f} (fp16)", model.half_gflops);
    case HalfTypes::kBf16AndFp16:
      return fmt::format("{:.0f}", model.half_gflops);
  }
  return "";
}

// The documentation page has exactly one row for each device, with its figures.
TEST(DeviceModels, AreThoseOfTheirPage) {
  const std::string page = text_of(MOTLEY_DEVICES_PAGE);
  std::set<std::string_view> names;
  for (const DeviceModel& model : device_models()) {
    EXPECT_TRUE(names.insert(model.name).second) << model.name;
    const std::string memory =
        model.memory_gib > 0 ? fmt::format("{:g}", model.memory_gib) : std::string("-");
    EXPECT_THAT(page, HasSubstr(fmt::format("\n| `{}` | {:.0f} | {} | {} | ", model.name,
                                            model.gflops, half_text(model), memory)));
    EXPECT_EQ(model.half_gflops > 0, model.half_types != HalfTypes::kNone) << model.name;
    EXPECT_TRUE(model.half_gflops == 0 || model.half_gflops >= model.gflops) << model.name;
  }
  std::size_t rows = 0;
  for (std::size_t at = page.find("\n| `"); at != std::string::npos;
       at = page.find("\n| `", at + 1)) {
    ++rows;
  }
  EXPECT_EQ(rows, names.size() + 1);  // plus the heading
}

TEST(DeviceModels, AreAllTakenInClusterFiles) {
  for (const DeviceModel& model : device_models()) {
    const auto read = read_one(fmt::format("device_model = '{}'\n{}", model.name,
                                           model.memory_gib > 0 ? "" : "memory_gib = 8\n"));
    ASSERT_TRUE(read.ok()) << describe(read.error());
    EXPECT_EQ(read->memory_gib, model.memory_gib > 0 ? model.memory_gib : 8) << model.name;
  }
}

TEST(DeviceModels, FillInWhatTheFileLeavesOut) {
  const auto read = read_one("device_model = 'rtx-3060'\n");
  ASSERT_TRUE(read.ok()) << describe(read.error());
  EXPECT_EQ(read->devices, std::vector<std::string>{"virtual"});
  EXPECT_EQ(read->memory_gib, 12);
  EXPECT_EQ(read->device_model, "rtx-3060");
  EXPECT_EQ(read->virtual_speed, std::nullopt) << "its speed depends on the precision";
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
  const auto cut_short = read_one("device_model = 'titan'\n");
  ASSERT_FALSE(cut_short.ok());
  EXPECT_THAT(cut_short.error().remedy, HasSubstr("did you mean 'titan-x-maxwell'"));
  for (const char* spelt : {"RTX 3090", "rtx3090", "NVIDIA GeForce RTX 3090"}) {
    EXPECT_EQ(closest_device_model(spelt), "rtx-3090") << spelt;
  }
  const auto memory = read_one("device_model = 'apple-m2'\n");
  ASSERT_FALSE(memory.ok());
  EXPECT_THAT(memory.error().remedy, HasSubstr("memory_gib"));
  const auto real = read_one("device_model = 'rtx-3060'\ndevices = ['cpu']\n");
  ASSERT_FALSE(real.ok());
  EXPECT_THAT(real.error().remedy, HasSubstr("devices = [\"virtual\"]"));
}

TEST(DeviceModels, AreFoundByTheNamesOfTheirVendors) {
  for (const auto& [said, meant] : {std::pair("Apple M2 Max", "apple-m2-max"),
                                    {"M4 Max", "apple-m4-max"},
                                    {"m2", "apple-m2"},
                                    {"M5", "apple-m5"},
                                    {"h100", "h100-pcie"},
                                    {"RTX 4070 Ti", "rtx-4070-ti"},
                                    {"NVIDIA GeForce RTX 4070 Ti SUPER", "rtx-4070-ti-super"},
                                    {"GTX1060", "gtx-1060"},
                                    {"Titan X", "titan-x-maxwell"},
                                    {"NVIDIA GeForce GTX TITAN X", "titan-x-maxwell"},
                                    {"NVIDIA TITAN X (Pascal)", "titan-x-pascal"},
                                    {"MI300X", "mi300x"},
                                    {"AMD Instinct MI300X", "mi300x"},
                                    {"AMD Radeon RX 7900 XTX", "rx-7900-xtx"},
                                    {"Radeon 8060S Graphics", "strix-halo"},
                                    {"AMD RYZEN AI MAX+ 395", "strix-halo"},
                                    {"NVIDIA GB10", "dgx-spark"},
                                    {"DGX Spark", "dgx-spark"},
                                    {"Raspberry Pi 5", "raspberry-pi-5"},
                                    {"abacus", ""}}) {
    EXPECT_EQ(closest_device_model(said), meant) << said;
  }
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
