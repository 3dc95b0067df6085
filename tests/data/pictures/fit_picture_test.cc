#include "data/pictures/fit_picture.h"

#include <cmath>

#include <gmock/gmock.h>

#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace motley {
namespace {

using testing::Each;
using testing::ElementsAre;

std::vector<int> fitted(const Raster& picture, std::int64_t height, std::int64_t width) {
  std::vector<std::byte> planes(static_cast<std::size_t>(picture.channels * height * width));
  fit_picture(picture, height, width, planes);
  std::vector<int> values;
  for (const std::byte value : planes) values.push_back(std::to_integer<int>(value));
  return values;
}

Raster grey(std::int64_t height, std::int64_t width, const std::vector<int>& values) {
  Raster picture{width, height, 1, {}};
  for (const int value : values) picture.pixels.push_back(static_cast<std::byte>(value));
  return picture;
}

TEST(FitPicture, OfTheRightSizePutsChannelsApart) {
  Raster picture{2, 1, 3, {}};
  for (const int value : {1, 2, 3, 4, 5, 6})
    picture.pixels.push_back(static_cast<std::byte>(value));
  EXPECT_THAT(fitted(picture, 1, 2), ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST(FitPicture, ShrinksToTheMeanOfTheArea) {
  EXPECT_THAT(fitted(grey(2, 2, {10, 20, 30, 41}), 1, 1), ElementsAre(25));
  // An output pixel covers one and a half input pixels.
  EXPECT_THAT(fitted(grey(3, 3, {0, 60, 90, 0, 60, 90, 0, 60, 90}), 2, 2),
              ElementsAre(20, 80, 20, 80));
}

TEST(FitPicture, GrowsOnStraightLines) {
  EXPECT_THAT(fitted(grey(1, 2, {0, 100}), 2, 4), ElementsAre(0, 25, 75, 100, 0, 25, 75, 100));
}

TEST(FitPicture, TakesTheMiddle) {
  EXPECT_THAT(fitted(grey(1, 5, {1, 2, 3, 4, 5}), 1, 1), ElementsAre(3));
  EXPECT_THAT(fitted(grey(4, 2, {1, 1, 2, 3, 4, 5, 9, 9}), 2, 2), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(fitted(grey(2, 6, {0, 0, 1, 2, 9, 9, 0, 0, 3, 4, 9, 9}), 2, 2),
              ElementsAre(1, 2, 3, 4));
}

Raster any_picture() {
  Raster picture{*rc::gen::inRange(1, 40), *rc::gen::inRange(1, 40), *rc::gen::element(1, 3), {}};
  picture.pixels = *rc::gen::container<std::vector<std::byte>>(
      static_cast<std::size_t>(picture.width * picture.height * picture.channels),
      rc::gen::map(rc::gen::inRange(0, 256),
                   [](int value) { return static_cast<std::byte>(value); }));
  return picture;
}

RC_GTEST_PROP(FitPicture, KeepsOneColour, ()) {
  Raster picture = any_picture();
  const std::byte colour = picture.pixels.front();
  std::ranges::fill(picture.pixels, colour);
  const auto values = fitted(picture, *rc::gen::inRange(1, 50), *rc::gen::inRange(1, 50));
  RC_ASSERT(std::ranges::all_of(values,
                                [&](int value) { return value == std::to_integer<int>(colour); }));
}

// A second implementation of the definition, in double: the mean of the area, pixel by pixel.
RC_GTEST_PROP(FitPicture, ShrinksToWhatItsAreaSays, ()) {
  const std::int64_t to = *rc::gen::inRange(1, 12);
  const std::int64_t from = to + *rc::gen::inRange(0, 30);
  Raster picture{from, from, 1, {}};
  for (std::int64_t i = 0; i < from * from; ++i) {
    picture.pixels.push_back(static_cast<std::byte>(*rc::gen::inRange(0, 256)));
  }
  const auto values = fitted(picture, to, to);
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const auto covered = [&](std::int64_t i, std::int64_t p) {
    const auto low = std::max(static_cast<double>(i) * scale, static_cast<double>(p));
    const auto high = std::min(static_cast<double>(i + 1) * scale, static_cast<double>(p + 1));
    return std::max(0.0, high - low) / scale;
  };
  for (std::int64_t i = 0; i < to * to; ++i) {
    double mean = 0;
    for (std::int64_t p = 0; p < from * from; ++p) {
      mean += covered(i / to, p / from) * covered(i % to, p % from) *
              std::to_integer<int>(picture.pixels[static_cast<std::size_t>(p)]);
    }
    RC_ASSERT(std::abs(values[static_cast<std::size_t>(i)] - mean) <= 0.5 + 1e-6);
  }
}

}  // namespace
}  // namespace motley
