#include "models/spec/initialize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace motley {
namespace {

ParameterSpec named(const std::string& name, std::int64_t count, InitRule rule) {
  return {name, {count}, rule};
}

std::vector<float> initial(const ParameterSpec& spec, std::int64_t seed = 1) {
  std::vector<float> values(static_cast<std::size_t>(spec.count()));
  initialize_parameter(spec, seed, values);
  return values;
}

double moment(const std::vector<float>& values, int power) {
  double sum = 0;
  for (const float value : values) sum += std::pow(value, power);
  return sum / static_cast<double>(values.size());
}

constexpr InitRule kStandard{InitRule::Kind::kNormal, 1.0};
constexpr std::int64_t kMany = 1 << 20;

// Tolerances are five standard deviations of each estimate over 2^20 draws.
TEST(Initialize, DrawsANormalDistribution) {
  const std::vector<float> values = initial(named("w", kMany, kStandard));
  EXPECT_NEAR(moment(values, 1), 0.0, 0.005);
  EXPECT_NEAR(moment(values, 2), 1.0, 0.007);
  EXPECT_NEAR(moment(values, 3), 0.0, 0.019);
  EXPECT_NEAR(moment(values, 4), 3.0, 0.048);
  const auto beyond =
      std::count_if(values.begin(), values.end(), [](float x) { return std::abs(x) > 1.959964; });
  EXPECT_NEAR(static_cast<double>(beyond) / kMany, 0.05, 0.0011);
}

TEST(Initialize, ScalesNormalDraws) {
  const std::vector<float> values = initial(named("w", kMany, {InitRule::Kind::kNormal, 0.02}));
  EXPECT_NEAR(moment(values, 2), 0.0004, 0.0004 * 0.007);
}

TEST(Initialize, DrawsAUniformDistribution) {
  const std::vector<float> values = initial(named("w", kMany, {InitRule::Kind::kUniform, 0.5}));
  EXPECT_LE(*std::max_element(values.begin(), values.end()), 0.5F);
  EXPECT_GE(*std::min_element(values.begin(), values.end()), -0.5F);
  EXPECT_NEAR(moment(values, 1), 0.0, 0.0015);
  EXPECT_NEAR(moment(values, 2), 1.0 / 12.0, 0.0004);
}

TEST(Initialize, FillsConstants) {
  EXPECT_EQ(initial(named("b", 3, {InitRule::Kind::kConstant, 1.5})),
            (std::vector<float>{1.5F, 1.5F, 1.5F}));
}

TEST(Initialize, DependsOnSeedAndNameOnly) {
  const std::vector<float> base = initial(named("w", 100, kStandard));
  EXPECT_NE(initial(named("v", 100, kStandard)), base);
  EXPECT_NE(initial(named("w", 100, kStandard), 2), base);
  EXPECT_EQ(initial(named("w", 100, kStandard)), base);
}

// Checkpoints and replicas rely on these bits: every compiler and CPU must give the same.
TEST(Initialize, GivesTheseBitsEverywhere) {
  EXPECT_EQ(initial(named("w", 4, kStandard)),
            (std::vector<float>{-0x1.3d122p+0F, -0x1.24a8dp-2F, 0x1.31936ap+1F, -0x1.3b1e4cp-1F}));
}

TEST(Initialize, GivesAPrefixForAShorterParameter) {
  const std::vector<float> base = initial(named("w", 100, kStandard));
  const std::vector<float> prefix = initial(named("w", 37, kStandard));
  EXPECT_TRUE(std::equal(prefix.begin(), prefix.end(), base.begin()));
}

}  // namespace
}  // namespace motley
