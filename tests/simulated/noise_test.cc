#include "simulated/noise.h"

#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace motley {
namespace {

std::vector<float> values(std::size_t count, std::uint64_t stream) {
  std::vector<float> values(count);
  Noise(1).fill_all(values, stream);
  return values;
}

double mean_square(std::span<const float> values) {
  return std::inner_product(values.begin(), values.end(), values.begin(), 0.0) /
         static_cast<double>(values.size());
}

TEST(Noise, IsCenteredAndFinite) {
  const std::vector<float> drawn = values(100 * Noise::kPiece, 3);
  const double mean = std::accumulate(drawn.begin(), drawn.end(), 0.0) / 409'600;
  EXPECT_NEAR(mean, 0, 0.05 * std::sqrt(mean_square(drawn)));
  for (const float value : drawn) ASSERT_TRUE(std::isfinite(value));
}

TEST(Noise, HasPiecesOfUnequalSizes) {
  const std::vector<float> drawn = values(64 * Noise::kPiece, 3);
  double least = 1e9;
  double most = 0;
  for (std::size_t first = 0; first < drawn.size(); first += Noise::kPiece) {
    const double square = mean_square(std::span(drawn).subspan(first, Noise::kPiece));
    least = std::min(least, square);
    most = std::max(most, square);
  }
  EXPECT_GT(most, 20 * least);
}

TEST(Noise, IsAFunctionOfItsStream) {
  EXPECT_EQ(values(10'000, 5), values(10'000, 5));
  EXPECT_NE(values(10'000, 5), values(10'000, 6));
}

}  // namespace
}  // namespace motley
