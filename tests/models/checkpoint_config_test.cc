// The config.json of a run's checkpoints: the package's, but only if the checkpoint contains the
// complete model.
#include <gtest/gtest.h>

#include "base/json.h"
#include "models/spec/hf_config.h"

namespace motley {
namespace {

Package package_with(const std::string& config, std::vector<std::string> untrained) {
  Package package;
  package.model_config = config;
  package.untrained = std::move(untrained);
  return package;
}

TEST(CheckpointConfig, IsThatOfThePackageInFloat32) {
  const auto config = checkpoint_config(
      package_with(R"({"model_type": "llama", "dtype": "bfloat16"})", {"bn.num_batches_tracked"}));
  ASSERT_TRUE(config.ok());
  EXPECT_EQ((*config)["model_type"], "llama");
  EXPECT_EQ((*config)["dtype"], "float32");
  EXPECT_EQ((*config)["torch_dtype"], "float32");
}

TEST(CheckpointConfig, ClaimsNoModelThatTheCheckpointIsNotAllOf) {
  for (const Package& package :
       {package_with("", {}), package_with(R"({"model_type": "llama"})", {"model.embed.weight"})}) {
    const auto config = checkpoint_config(package);
    ASSERT_TRUE(config.ok());
    EXPECT_EQ(*config, (Json{{"model_type", "motley-package"}}));
  }
}

}  // namespace
}  // namespace motley
