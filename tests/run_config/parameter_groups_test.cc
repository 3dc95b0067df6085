#include "run_config/parameter_groups.h"

#include <gmock/gmock.h>

#include "run_config/config_io.h"

namespace motley {
namespace {

using testing::HasSubstr;

TEST(ParameterGroups, ReadFactors) {
  const auto groups = parse_parameter_groups(
      {"*.bias: weight_decay=0", " head.* : lr = 0.1 , weight_decay=2", "a:optimizer=adamw"});
  ASSERT_TRUE(groups.ok()) << describe(groups.error());
  ASSERT_EQ(groups->size(), 3);
  EXPECT_EQ((*groups)[0].pattern, "*.bias");
  EXPECT_EQ((*groups)[0].lr, 1);
  EXPECT_EQ((*groups)[0].weight_decay, 0);
  EXPECT_EQ((*groups)[1].pattern, "head.*");
  EXPECT_EQ((*groups)[1].lr, 0.1);
  EXPECT_EQ((*groups)[1].weight_decay, 2);
  EXPECT_FALSE((*groups)[1].by_adamw);
  EXPECT_FALSE((*groups)[2].weight_decay.has_value());
  EXPECT_TRUE((*groups)[2].by_adamw);
}

TEST(ParameterGroups, MatchWholeNames) {
  EXPECT_TRUE(matches_pattern("*.bias", "h.0.attn.bias"));
  EXPECT_TRUE(matches_pattern("h.[01].*", "h.1.ln_1.weight"));
  EXPECT_TRUE(matches_pattern("h.?.mlp*", "h.7.mlp.c_fc.weight"));
  EXPECT_FALSE(matches_pattern("h.?.mlp*", "h.10.mlp.c_fc.weight"));
  EXPECT_FALSE(matches_pattern("bias", "h.0.attn.bias"));
  EXPECT_FALSE(matches_pattern("*.BIAS", "h.0.attn.bias"));
}

TEST(ParameterGroups, LetTheFirstMatchCount) {
  const auto groups = parse_parameter_groups({"h.0.*: lr=0", "*.bias: lr=1"}).value();
  EXPECT_EQ(group_of(groups, "h.0.bias"), 0);
  EXPECT_EQ(group_of(groups, "h.1.bias"), 1);
  EXPECT_FALSE(group_of(groups, "h.1.weight").has_value());
}

TEST(ParameterGroups, RefuseWhatTheyCannotMean) {
  for (const char* entry :
       {"", "*.bias", ": lr=1", "*.bias:", "*.bias: lr", "*.bias: lr=", "*.bias: lr=fast",
        "*.bias: lr=-1", "*.bias: lr=nan", "*.bias: lr=inf", "*.bias: lr=1e9", "*.bias: lr=0.5x",
        "*.bias: rate=1", "*.bias: lr=1,", "*.bias: optimizer=sgd"}) {
    const auto groups = parse_parameter_groups({"ok: lr=1", entry});
    ASSERT_FALSE(groups.ok()) << entry;
    EXPECT_EQ(groups.error().code, ErrorCode::kConfig);
    EXPECT_EQ(groups.error().key, "train.groups");
    EXPECT_THAT(groups.error().what, HasSubstr(entry));
    EXPECT_FALSE(groups.error().remedy.empty()) << entry;
  }
}

TEST(ParameterGroups, AreCheckedWithTheConfiguration) {
  const auto bad = resolve_config("[train]\ngroups = [\"*.bias\"]", "gpt.toml", {}, {});
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().what, "bad entry of train.groups, '*.bias', gpt.toml:2:10");
  const char* const by_adamw = "[train]\ngroups = [\"a: optimizer=adamw\"]\n";
  const auto without = resolve_config(by_adamw, "gpt.toml", {}, {});
  ASSERT_FALSE(without.ok());
  EXPECT_THAT(without.error().what, HasSubstr("needs train.optimizer = \"muon\""));
  EXPECT_TRUE(resolve_config(by_adamw, "gpt.toml", {}, {{"train.optimizer", "muon"}}).ok());
}

}  // namespace
}  // namespace motley
