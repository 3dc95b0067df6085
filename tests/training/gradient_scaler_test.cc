#include "training/vote/gradient_scaler.h"

#include <gtest/gtest.h>

#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "base/json.h"

namespace motley {
namespace {

TEST(GradientScaler, BeginsAtAPowerOfTwoThatFitsTheStep) {
  EXPECT_EQ(first_gradient_scale(1).value, 0x1p16);
  EXPECT_EQ(first_gradient_scale(8192).value, 8);
  EXPECT_EQ(first_gradient_scale(8193).value, 8);
  EXPECT_EQ(first_gradient_scale(std::int64_t{1} << 20).value, 0x1p-4);
  EXPECT_EQ(first_gradient_scale(std::int64_t{1} << 62).value, kLeastGradientScale);
}

TEST(GradientScaler, HalvesAtOverflowAndDoublesAfterManySteps) {
  GradientScale scale{8, kStepsToGrow - 2};
  scale = next_gradient_scale(scale, true);
  EXPECT_EQ(scale, (GradientScale{8, kStepsToGrow - 1}));
  EXPECT_EQ(next_gradient_scale(scale, true), (GradientScale{16, 0}));
  EXPECT_EQ(next_gradient_scale(scale, false), (GradientScale{4, 0}));
}

TEST(GradientScaler, IsOfFp16Alone) {
  TrainConfig train;
  train.global_batch = 4;
  EXPECT_EQ(gradient_scale_of(train, 16, {}), std::nullopt);
  EXPECT_EQ(gradient_scale_of(train, 16, GradientScale{2, 3}), std::nullopt);
  train.precision = "fp16";
  EXPECT_EQ(gradient_scale_of(train, 16, {}), (GradientScale{1024, 0}));
  EXPECT_EQ(gradient_scale_of(train, 16, GradientScale{2, 3}), (GradientScale{2, 3}));
}

// In any case the scale stays valid for manifests.
RC_GTEST_PROP(GradientScaler, StaysAPowerOfTwoThatOccurs, ()) {
  GradientScale scale = first_gradient_scale(*rc::gen::inRange<std::int64_t>(1, 1 << 30));
  const auto steps = *rc::gen::inRange(0, 200);
  const bool finite = *rc::gen::arbitrary<bool>();
  for (int i = 0; i < steps; ++i) {
    scale = next_gradient_scale({scale.value, finite ? kStepsToGrow - 1 : scale.steps}, finite);
  }
  const auto read = gradient_scale_from_json(gradient_scale_to_json(scale), "here");
  RC_ASSERT(read.ok());
  RC_ASSERT(*read == scale);
}

TEST(GradientScale, OfFilesIsCheckedBeforeUse) {
  for (const char* text :
       {R"({"value": 3, "steps": 0})", R"({"value": 0, "steps": 0})",
        R"({"value": -2, "steps": 0})", R"({"value": 1e300, "steps": 0})",
        R"({"value": 2, "steps": -1})", R"({"value": 2})", R"({"value": 2, "steps": 2000})",
        R"({"value": 2, "steps": 9223372036854775807})",
        R"({"value": 4.547473508864641e-13, "steps": 0})",
        R"({"value": 2199023255552, "steps": 0})", R"({"value": "2", "steps": 0})", R"([])"}) {
    const auto read = gradient_scale_from_json(*parse_json(text, "here"), "here");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt) << text;
  }
}

}  // namespace
}  // namespace motley
