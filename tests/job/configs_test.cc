// Every example that the project ships must be accepted as it stands.
#include <fmt/format.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/toml.h"
#include "job/config_io.h"

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
                         testing::Values("gpt-tiny.toml", "gpt2-124m.toml", "mlp.toml"));

TEST(ShippedConfigs, AreAllTested) {
  std::size_t configs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(MOTLEY_CONFIGS)) {
    configs += entry.path().extension() == ".toml" ? 1 : 0;
  }
  constexpr std::size_t kTested = 3;
  constexpr std::size_t kClusterFiles = 1;
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

TEST(ShippedCluster, IsToml) {
  const auto text = read_file(std::filesystem::path(MOTLEY_CONFIGS) / "cluster-example.toml");
  ASSERT_TRUE(text.ok()) << describe(text.error());
  const auto document = parse_toml(*text, "cluster-example.toml");
  EXPECT_TRUE(document.ok()) << describe(document.error());
}

}  // namespace
}  // namespace motley
