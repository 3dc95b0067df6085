// The dtypes in which a device multiplies matrices.
#include "models/device/dtype_support.h"

#include <cstdlib>
#include <fstream>
#include <string>

#include "models/device/kinds/cuda_queries.h"
#include "tests/models/far_fixture.h"

namespace motley {
namespace {

using FarNumberTypes = FarDevice;

// The processor's flags from Linux, not from the tested code.
bool linux_shows(const std::string& flag) {
  std::ifstream lines("/proc/cpuinfo");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("flags") && (line + " ").find(" " + flag + " ") != std::string::npos) {
      return true;
    }
  }
  return false;
}

TEST(NumberTypes, HaveTheNamesOfTheConfiguration) {
  EXPECT_EQ(dtype_name(at::kFloat), "fp32");
  EXPECT_EQ(dtype_name(at::kBFloat16), "bf16");
  EXPECT_EQ(dtype_name(at::kHalf), "fp16");
  EXPECT_EQ(dtype_name(at::kDouble), "");
}

TEST(NumberTypesOfTheProcessor, AreThoseOfItsInstructions) {
  const ComputeDevice processor;
  EXPECT_TRUE(computes_products_in(processor, at::kFloat));
  EXPECT_EQ(computes_products_in(processor, at::kBFloat16), linux_shows("avx512_bf16"));
  EXPECT_FALSE(computes_products_in(processor, at::kHalf));
}

TEST(NumberTypesOfTheProcessor, AreNeverThoseThatNothingTrainsIn) {
  EXPECT_FALSE(computes_products_in(ComputeDevice(), at::kDouble));
  EXPECT_FALSE(computes_products_in(ComputeDevice(), at::kLong));
}

TEST(NumberTypesOfCards, FollowTheCapability) {
  struct Case {
    ComputeCapability capability;
    bool fp16;
    bool bf16;
  };

  constexpr Case kCases[] = {{{6, 1}, false, false}, {{7, 0}, true, false}, {{7, 5}, true, false},
                             {{8, 0}, true, true},   {{8, 9}, true, true},  {{12, 0}, true, true}};
  for (const auto& [capability, fp16, bf16] : kCases) {
    EXPECT_EQ(computes_products_in(capability, at::kHalf), fp16) << capability.major;
    EXPECT_EQ(computes_products_in(capability, at::kBFloat16), bf16) << capability.major;
  }
}

TEST(NumberTypesOfCards, AreNoneWhereCudaDoesNotAnswer) {
  if (cuda_capability(0)) GTEST_SKIP() << "there is a card";
  EXPECT_FALSE(cuda_computes_products_in(0, at::kHalf));
  EXPECT_FALSE(cuda_computes_products_in(0, at::kBFloat16));
}

TEST_F(FarNumberTypes, MultipliesWhatItsLibrarySays) {
  const auto computes = [&](at::ScalarType type) { return computes_products_in(device_, type); };
  EXPECT_TRUE(computes(at::kFloat));
  EXPECT_TRUE(computes(at::kBFloat16));
  EXPECT_TRUE(computes(at::kHalf));

  ::setenv("MOTLEY_FAR_TYPES", " fp16\tbf1", /*overwrite=*/1);
  EXPECT_TRUE(computes(at::kFloat));
  EXPECT_FALSE(computes(at::kBFloat16));
  EXPECT_TRUE(computes(at::kHalf));
  ::setenv("MOTLEY_FAR_TYPES", "", /*overwrite=*/1);
  EXPECT_TRUE(computes(at::kFloat));
  EXPECT_FALSE(computes(at::kHalf));
  ::unsetenv("MOTLEY_FAR_TYPES");
}

}  // namespace
}  // namespace motley
