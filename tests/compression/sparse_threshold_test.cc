#include "compression/sparse/sparse_threshold.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tests/compression/slices.h"

namespace motley {
namespace {

// One pass as in a sender: selects, counts, adapts. Returns the number of selected values.
std::size_t pass(SparseThreshold& threshold, const Floats& values, double density) {
  const Selection selection =
      threshold.select(values.size(), density, [&](std::size_t i) { return values[i]; });
  const float least = std::bit_cast<float>(selection.threshold_bits);
  const auto selected = static_cast<std::size_t>(
      std::ranges::count_if(values, [=](float value) { return !(std::abs(value) < least); }));
  threshold.adapt(selected, selection_target(values.size(), density));
  return selected;
}

Floats scaled(Floats values, float factor) {
  for (float& value : values) value *= factor;
  return values;
}

TEST(SparseThreshold, WantsAShareAndOneAtLeast) {
  EXPECT_EQ(selection_target(0, 0.5), 0U);
  EXPECT_EQ(selection_target(1, 0.001), 1U);
  EXPECT_EQ(selection_target(1000, 0.0125), 13U);
  EXPECT_EQ(selection_target(1000, 1), 1000U);
  EXPECT_EQ(selected_max(1000, 1), 1000U);
  EXPECT_EQ(selected_max(1000, 0.1), 166U);
}

TEST(SparseThreshold, ComesToRestAtTheTarget) {
  for (const auto& slice : {normal_slice, heavy_slice}) {
    SparseThreshold threshold;
    for (unsigned step = 0; step < 20; ++step) {
      const std::size_t selected = pass(threshold, slice(400'000, step), 0.01);
      EXPECT_GT(selected, 3600U) << step;
      EXPECT_LT(selected, 4400U) << step;
    }
  }
}

TEST(SparseThreshold, IsChosenAnewWhereTheSliceOrTheDensityIsAnother) {
  SparseThreshold threshold;
  const Floats values = normal_slice(100'000);
  EXPECT_NEAR(static_cast<double>(pass(threshold, values, 0.25)), 25'000, 2500);
  EXPECT_EQ(pass(threshold, values, 0.01), 1000U);
  EXPECT_EQ(pass(threshold, scaled(values, 1000), 0.01), 1000U);
  EXPECT_EQ(pass(threshold, scaled(values, 1e-30F), 0.01), 1000U);
}

TEST(SparseThreshold, SelectsNoZerosAndRecoversFromThem) {
  SparseThreshold threshold;
  EXPECT_EQ(pass(threshold, Floats(1000), 0.1), 0U);
  EXPECT_EQ(threshold.value(), 0);
  EXPECT_EQ(pass(threshold, normal_slice(1000), 0.1), 100U);
}

TEST(SparseThreshold, KeepsToTheTargetWhereValuesAreEqual) {
  SparseThreshold threshold;
  const Floats values(1000, 2.0F);
  const Selection selection =
      threshold.select(values.size(), 0.1, [&](std::size_t i) { return values[i]; });
  EXPECT_EQ(selection.threshold_bits, std::bit_cast<std::uint32_t>(2.0F));
  EXPECT_EQ(selection.selected_max, 100U);
}

TEST(SparseThreshold, SelectsAllThatIsNotFinite) {
  SparseThreshold threshold;
  EXPECT_EQ(pass(threshold, Floats(1000, NAN), 0.1), 1000U);
  EXPECT_EQ(pass(threshold, Floats(1000, -INFINITY), 0.1), 1000U);
}

TEST(SparseThreshold, IsTheSameForTheSameCalls) {
  SparseThreshold a, b;
  for (unsigned step = 0; step < 5; ++step) {
    EXPECT_EQ(pass(a, normal_slice(50'000, step), 0.01), pass(b, normal_slice(50'000, step), 0.01));
    EXPECT_EQ(a.value(), b.value());
  }
}

Floats largest_first(Floats values) {
  for (float& value : values) value = std::abs(value);
  std::ranges::sort(values, std::greater<>());
  return values;
}

std::vector<std::uint32_t> candidates_from(const Floats& values, std::uint32_t bound) {
  std::vector<std::uint32_t> candidates;
  for (const float value : values) {
    const auto bits = std::bit_cast<std::uint32_t>(std::abs(value));
    if (bits >= bound) candidates.push_back(bits);
  }
  return candidates;
}

TEST(SparseThreshold, IsExactAmongCandidates) {
  for (const auto& slice : {normal_slice, heavy_slice}) {
    for (unsigned seed = 0; seed < 20; ++seed) {
      const Floats values = slice(50'000, seed);
      SparseThreshold threshold;
      auto candidates = candidates_from(values, threshold.sampled_bound(values, 500));
      ASSERT_TRUE(SparseThreshold::enough(candidates.size(), 500)) << candidates.size();
      const Selection selection = threshold.select_among(candidates, values.size(), 0.01);
      EXPECT_EQ(std::bit_cast<float>(selection.threshold_bits), largest_first(values)[499]);
      EXPECT_EQ(selection.selected_max, selected_max(values.size(), 0.01));
      EXPECT_EQ(threshold.value(), largest_first(values)[499]);
    }
  }
}

TEST(SparseThreshold, LooksForCandidatesBelowTheLastThreshold) {
  SparseThreshold threshold;
  EXPECT_EQ(threshold.last_bound(), std::bit_cast<std::uint32_t>(FLT_MAX));
  std::vector<std::uint32_t> candidates = {std::bit_cast<std::uint32_t>(2.0F)};
  EXPECT_EQ(threshold.select_among(candidates, 1000, 0.001).selected_max,
            selected_max(1000, 0.001));
  EXPECT_EQ(threshold.last_bound(), std::bit_cast<std::uint32_t>(1.8F));
  // Fewer candidates than wanted: all but zeros are selected.
  EXPECT_EQ(threshold.select_among(candidates, 1000, 0.01).threshold_bits, 1U);
  EXPECT_EQ(threshold.last_bound(), 1U);
}

TEST(SparseThreshold, TakesAllButZerosWhereTheyAreFewerThanWanted) {
  SparseThreshold threshold;
  std::vector<std::uint32_t> candidates = {std::bit_cast<std::uint32_t>(3.0F)};
  EXPECT_EQ(threshold.select_among(candidates, 1000, 0.01).threshold_bits, 1U);
  std::vector<std::uint32_t> none;
  EXPECT_EQ(threshold.select_among(none, 1000, 0.01).selected_max, 0U);
}

}  // namespace
}  // namespace motley
