// Every shipped example configuration must be accepted unchanged.
#include <fmt/format.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "base/system/files.h"
#include "plan/cluster.h"
#include "plan/cluster/cluster_file.h"
#include "run_config/config_io.h"

namespace motley {
namespace {

class ShippedConfig : public testing::TestWithParam<const char*> {};

TEST_P(ShippedConfig, Resolves) {
  const auto text = read_file(std::filesystem::path(MOTLEY_CONFIGS) / GetParam());
  ASSERT_TRUE(text.ok()) << describe(text.error());
  const auto result = resolve_config(*text, GetParam(), {}, {});
  EXPECT_TRUE(result.ok()) << describe(result.error());
}

INSTANTIATE_TEST_SUITE_P(Configs,
                         ShippedConfig,
                         testing::Values("gpt-tiny.toml",
                                         "gpt2-124m.toml",
                                         "gpt2-xl.toml",
                                         "mlp.toml",
                                         "quickstart.toml"));

TEST(ShippedConfigs, AreAllTested) {
  std::size_t configs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(MOTLEY_CONFIGS)) {
    configs += entry.path().extension() == ".toml" ? 1 : 0;
  }
  constexpr std::size_t kTested = 5;
  constexpr std::size_t kClusterFiles = 5;
  EXPECT_EQ(configs, kTested + kClusterFiles);
}

TEST(ConfigDocument, ListsEveryKeyWithTypeAndDefault) {
  const auto text = read_file(MOTLEY_CONFIG_DOCUMENT);
  ASSERT_TRUE(text.ok()) << describe(text.error());
  for (const ConfigKey& key : config_keys()) {
    const auto dot = key.name.find('.');
    const std::string row =
        fmt::format("| `{}` | {} | `{}` |", key.name.substr(dot + 1), key.type, key.fallback);
    const auto section = text->find(fmt::format("## `[{}]`", key.name.substr(0, dot)));
    EXPECT_NE(text->find(row, section), std::string::npos) << key.name << ": " << row;
  }
}

class ShippedCluster : public testing::TestWithParam<const char*> {};

TEST_P(ShippedCluster, IsAccepted) {
  const auto text = read_file(std::filesystem::path(MOTLEY_CONFIGS) / GetParam());
  ASSERT_TRUE(text.ok()) << describe(text.error());
  const auto cluster = parse_cluster(*text, GetParam());
  EXPECT_TRUE(cluster.ok()) << describe(cluster.error());
}

INSTANTIATE_TEST_SUITE_P(Configs,
                         ShippedCluster,
                         testing::Values("cluster-example.toml",
                                         "quickstart-cluster.toml",
                                         "three-machines.toml"));

}  // namespace
}  // namespace motley
