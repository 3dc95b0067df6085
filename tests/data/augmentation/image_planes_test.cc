// Changes of images have torchvision's values (make_augmentation_golden.py).
#include "data/augmentation/image_planes.h"

#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace motley {
namespace {

ImagePlanes numbered() {
  ImagePlanes image{3, 5, 7, {}};
  for (int i = 0; i < 3 * 5 * 7; ++i) {
    image.values.push_back(static_cast<float>(i * 37 % 256) / 255.0F);
  }
  return image;
}

ColourFactors factor_of(ColourChange change, float factor) {
  ColourFactors colours;
  colours.factors[static_cast<std::size_t>(change)] = factor;
  return colours;
}

// The image after the change that a line names; reads its parameters.
ImagePlanes changed(const std::string& name, std::istream& parameters) {
  ImagePlanes image = numbered();
  if (name == "box") {
    ImageBox box;
    parameters >> box.top >> box.left >> box.height >> box.width;
    return resized(image, box);
  }
  float factor = 0;
  parameters >> factor;
  const ColourChange change = name == "brightness" ? ColourChange::kBrightness
                              : name == "contrast" ? ColourChange::kContrast
                                                   : ColourChange::kSaturation;
  change_colours(image, factor_of(change, factor));
  return image;
}

TEST(ImagePlanes, AreChangedAsByTorchvision) {
  std::ifstream file(std::string(MOTLEY_GOLDEN) + "/augmentation.txt");
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    SCOPED_TRACE(line.substr(0, 20));
    const ImagePlanes image = changed(name, words);
    ASSERT_EQ(image.values.size(), 105U);
    for (const float value : image.values) {
      float expected = -1;
      ASSERT_TRUE(words >> expected);
      EXPECT_NEAR(value, expected, 2e-6F);
    }
  }
  EXPECT_EQ(lines, 10);
}

TEST(ImagePlanes, ThatAreGreyKeepTheirSaturation) {
  ImagePlanes image{1, 1, 2, {0.25F, 0.5F}};
  change_colours(image, factor_of(ColourChange::kSaturation, 1.4F));
  EXPECT_EQ(image.values, (std::vector{0.25F, 0.5F}));
}

}  // namespace
}  // namespace motley
