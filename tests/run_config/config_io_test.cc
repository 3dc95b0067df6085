#include "run_config/config_io.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>

#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "base/json.h"

namespace motley {
namespace {

using testing::ElementsAre;

Config resolved(std::string_view toml, const Overrides& overrides = {}) {
  const auto result = resolve_config(toml, "gpt.toml", {}, overrides);
  EXPECT_TRUE(result.ok()) << describe(result.error());
  return result.ok() ? result->config : Config{};
}

// A configuration in which no key has its default, with texts that need quoting.
Config unusual() {
  return resolved(R"(
    [model]
    kind = "mlp"
    layers = 3
    tied = false
    dropout = 0.1
    [data]
    path = 'C:\text "quoted"'
    suffixes = [".cc", ".h"]
    kind = "images"
    mean = [0.5, 1, -0.1]
    std = [0.25, 1e-3, 2]
    augment = ["crop", "flip"]
    crop_pixels = 2
    [train]
    steps = 50
    warmup_steps = 5
    lr = 1e-3
    epsilon = 1e-10
    [parallel]
    cuts = [1, 2]
  )");
}

TEST(ResolveConfig, GivesDefaultsForEmptyText) {
  const auto result = resolve_config("", "gpt.toml", {}, {});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(config_to_toml(result->config), config_to_toml(Config{}));
  for (const auto& [key, origin] : result->origins) EXPECT_EQ(origin, "default") << key;
}

TEST(ResolveConfig, ShortensTheWarmUpOfShortRunsWhereNobodySaysHowLongItIs) {
  const auto warmup = [](const char* text) {
    return resolve_config(text, "gpt.toml", {}, {})->config.train.warmup_steps;
  };
  EXPECT_EQ(warmup("[train]\nsteps = 20"), 2);
  EXPECT_EQ(warmup("[train]\nsteps = 2000"), 100);
  EXPECT_EQ(warmup("[train]\nsteps = 200\nwarmup_steps = 100"), 100);
  // The first part of a longer run uses the longer run's warm-up.
  EXPECT_EQ(warmup("[train]\nsteps = 200\nschedule_steps = 500"), 50);
  EXPECT_EQ(warmup("[train]\nsteps = 20\nschedule_steps = 5000"), 20);
  EXPECT_TRUE(is_default(resolve_config("", "gpt.toml", {}, {})->origins, "train.warmup_steps"));
  EXPECT_FALSE(
      is_default(resolve_config("[train]\nwarmup_steps = 100", "gpt.toml", {}, {})->origins,
                 "train.warmup_steps"));
  EXPECT_FALSE(is_default({}, "train.warmup_steps"));
}

TEST(ResolveConfig, ReadsEveryType) {
  const Config config = unusual();
  EXPECT_EQ(config.model.kind, "mlp");
  EXPECT_EQ(config.model.layers, 3);
  EXPECT_FALSE(config.model.tied);
  EXPECT_EQ(config.train.steps, 50);
  EXPECT_EQ(config.train.lr, 1e-3);
  EXPECT_THAT(config.data.suffixes, ElementsAre(".cc", ".h"));
  EXPECT_THAT(config.data.mean, ElementsAre(0.5, 1.0, -0.1));
  EXPECT_THAT(config.data.augment, ElementsAre("crop", "flip"));
  EXPECT_THAT(config.parallel.cuts, ElementsAre(1, 2));
}

TEST(ResolveConfig, TakesAnIntegerWhereANumberIsWanted) {
  EXPECT_EQ(resolved("[train]\nlr = 1").train.lr, 1.0);
}

TEST(ResolveConfig, LetsLaterSourcesWinAndNotesThem) {
  const auto result = resolve_config("[train]\nsteps = 200\nseed = 2\nlr = 0.1\n", "gpt.toml",
                                     {{"MOTLEY_TRAIN_SEED", "3"}, {"MOTLEY_TRAIN_LR", "0.2"}},
                                     {{"train.lr", "0.3"}, {"train.lr", "0.4"}});
  ASSERT_TRUE(result.ok()) << describe(result.error());
  EXPECT_EQ(result->config.train.steps, 200);
  EXPECT_EQ(result->config.train.seed, 3);
  EXPECT_EQ(result->config.train.lr, 0.4);
  EXPECT_EQ(result->origins.at("train.steps"), "gpt.toml:2:9");
  EXPECT_EQ(result->origins.at("train.seed"), "MOTLEY_TRAIN_SEED");
  EXPECT_EQ(result->origins.at("train.lr"), "--set");
  EXPECT_EQ(result->origins.at("train.clip"), "default");
}

TEST(ResolveConfig, IgnoresVariablesOfOtherPurpose) {
  EXPECT_TRUE(resolve_config("", "gpt.toml", {{"MOTLEY_LOG", "debug"}}, {}).ok());
}

TEST(ResolveConfig, TakesBareWordsAndQuotedTextForStrings) {
  EXPECT_EQ(resolved("", {{"train.optimizer", "sgd"}}).train.optimizer, "sgd");
  EXPECT_EQ(resolved("", {{"train.optimizer", "\"sgd\""}}).train.optimizer, "sgd");
  EXPECT_EQ(resolved("", {{"run.dir", "runs/a b=[1]"}}).run.dir, "runs/a b=[1]");
  EXPECT_EQ(resolved("", {{"data.path", ""}}).data.path, "");
}

TEST(ResolveConfig, TakesListsFromTheCommandLine) {
  EXPECT_THAT(resolved("", {{"parallel.cuts", "[2, 5]"}}).parallel.cuts, ElementsAre(2, 5));
}

// As in a checkpoint of a version before the key existed.
TEST(SavedConfig, HasDefaultsForKeysThatItDoesNotKnow) {
  Json json = config_to_json(unusual());
  json["train"].erase("max_skipped");
  EXPECT_FALSE(config_from_json(json, "message").ok());
  const auto saved = saved_config_from_json(json, "manifest");
  ASSERT_TRUE(saved.ok()) << describe(saved.error());
  EXPECT_EQ(config_to_toml(*saved), config_to_toml(unusual()));
}

TEST(ConfigToToml, ReadsBackTheSame) {
  const Config config = unusual();
  EXPECT_EQ(config_to_toml(resolved(config_to_toml(config))), config_to_toml(config));
}

TEST(ConfigToToml, KeepsQuotedText) {
  EXPECT_EQ(resolved(config_to_toml(unusual())).data.path, "C:\\text \"quoted\"");
}

RC_GTEST_PROP(ConfigToToml, KeepsEveryBitOfANumber, ()) {
  Config config;
  const int exponent = *rc::gen::inRange(-300, 19);
  const auto mantissa = *rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 53);
  config.train.lr = std::ldexp(static_cast<double>(mantissa), exponent - 53);
  const auto back = resolve_config(config_to_toml(config), "text", {}, {});
  RC_ASSERT(back.ok());
  RC_ASSERT(back->config.train.lr == config.train.lr);
}

RC_GTEST_PROP(ConfigToToml, KeepsEveryText, ()) {
  const auto printable = rc::gen::inRange<char>(0x20, 0x7f);
  Config config;
  config.run.dir = *rc::gen::container<std::string>(printable);
  const auto back = resolve_config(config_to_toml(config), "text", {}, {});
  RC_ASSERT(back.ok());
  RC_ASSERT(back->config.run.dir == config.run.dir);
}

TEST(ConfigJson, ReadsBackTheSame) {
  const auto back = config_from_json(config_to_json(unusual()), "message");
  ASSERT_TRUE(back.ok()) << describe(back.error());
  EXPECT_EQ(config_to_toml(*back), config_to_toml(unusual()));
}

TEST(ConfigKeys, HaveHelpAndADefaultThatResolves) {
  for (const ConfigKey& key : config_keys()) {
    EXPECT_FALSE(key.help.empty()) << key.name;
    EXPECT_TRUE(resolve_config("", "", {}, {{key.name, key.fallback}}).ok()) << key.name;
  }
}

TEST(ConfigValue, IsToml) {
  const Config config = unusual();
  EXPECT_EQ(config_value(config, "train.lr"), "0.001");
  EXPECT_EQ(config_value(config, "train.clip"), "1.0");
  EXPECT_EQ(config_value(config, "model.kind"), "\"mlp\"");
  EXPECT_EQ(config_value(config, "parallel.cuts"), "[1, 2]");
  EXPECT_EQ(config_value(config, "data.suffixes"), "[\".cc\", \".h\"]");
  EXPECT_EQ(config_value(config, "data.mean"), "[0.5, 1.0, -0.1]");
}

}  // namespace
}  // namespace motley
