#include "cluster/prepare.h"

#include <string>

#include <gmock/gmock.h>

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<PlanOptions> options_with(const std::string& activations, const std::string& gradients) {
  Config config;
  config.compression.activations = activations;
  config.compression.gradients = gradients;
  return plan_options(config, 0);
}

TEST(PlanOptions, TakeAnyChainForGradients) {
  for (const char* chain : {"none", "int4", "topk(0.01)|fp16", "lowrank(4)|fp16"}) {
    const auto options = options_with("fp16", chain);
    ASSERT_TRUE(options.ok()) << describe(options.error());
    EXPECT_THAT(options->codecs, ElementsAre("fp16"));
    EXPECT_THAT(options->gradient_codecs, ElementsAre(chain));
  }
}

TEST(PlanOptions, RefuseForActivationsWhatNeedsFeedback) {
  for (const char* chain : {"topk(0.01)", "topk(0.1)|int8|zstd(1)", "lowrank(4)|fp16"}) {
    const auto options = options_with(chain, "none");
    ASSERT_FALSE(options.ok());
    EXPECT_EQ(options.error().code, ErrorCode::kConfig);
    EXPECT_THAT(options.error().what, HasSubstr(chain));
    EXPECT_THAT(options.error().remedy, HasSubstr("fp16"));
  }
}

}  // namespace
}  // namespace motley
