#include "checkpoint/residual_name.h"

#include <gmock/gmock.h>

namespace motley {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(ResidualName, IsReadAsItIsWritten) {
  const std::string name = residual_name(12, "h.0.attn.weight");
  EXPECT_EQ(name, "residual.12/h.0.attn.weight");
  const auto parsed = parse_residual_name(name);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->member, 12);
  EXPECT_EQ(parsed->parameter, "h.0.attn.weight");
}

TEST(ResidualName, TellsWhatIsOwed) {
  EXPECT_EQ(residual_name(3, "w", ResidualKind::kUnsent), "unsent.3/w");
  EXPECT_EQ(residual_name(0, "w", ResidualKind::kVelocity), "velocity.0/w");
  EXPECT_EQ(parse_residual_name("unsent.3/w")->residual_kind, ResidualKind::kUnsent);
  EXPECT_EQ(parse_residual_name("velocity.0/w")->residual_kind, ResidualKind::kVelocity);
  EXPECT_EQ(parse_residual_name("residual.0/w")->residual_kind, ResidualKind::kResidual);
}

TEST(ResidualName, IsNothingElse) {
  for (const char* name :
       {"exp_avg/w", "residual/w", "residual./w", "residual.01/w", "residual.-1/w", "residual.1",
        "residual.1x/w", "residual. 1/w", "velocity/w", "unsent.x/w", "residual.4294967296/w",
        "Residual.1/w", ""}) {
    EXPECT_FALSE(parse_residual_name(name).has_value()) << name;
  }
}

// By number, not as text, whichever files contain them.
TEST(ResidualName, IsListedInTheOrderOfTheHolders) {
  Manifest manifest;
  manifest.files = {
      {"optimizer-00001-of-00002.safetensors", 0, "", {{"residual.10/w", ""}, {"exp_avg/w", ""}}},
      {"optimizer-00002-of-00002.safetensors",
       0,
       "",
       {{"residual.2/w", ""}, {"residual.0/v", ""}}}};
  EXPECT_THAT(residual_names(manifest),
              ElementsAre(Pair("v", ElementsAre("residual.0/v")),
                          Pair("w", ElementsAre("residual.2/w", "residual.10/w"))));
  manifest.files[0].tensor_hashes["velocity.1/w"] = "";
  EXPECT_THAT(residual_names(manifest, ResidualKind::kVelocity),
              ElementsAre(Pair("w", ElementsAre("velocity.1/w"))));
  EXPECT_EQ(residual_names(manifest).size(), 2U);
}

}  // namespace
}  // namespace motley
