// Augmentation and normalisation of images: each pixel compared with the definition.
#include "data/sample_maker.h"

#include <numeric>

#include <gmock/gmock.h>

#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "tests/data/array_fixture.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two images of 2 × 3 × 4, in floats or bytes, with distinct values.
class Images {
 public:
  explicit Images(ElementType type) {
    std::vector<float> floats(48);
    std::iota(floats.begin(), floats.end(), 1.0F);
    std::vector<std::uint8_t> pixels(48);
    std::iota(pixels.begin(), pixels.end(), std::uint8_t{1});
    inputs_ = type == ElementType::kFloat32 ? bytes_of(floats) : bytes_of(pixels);
    const std::size_t distance = inputs_.size() / 2;
    examples_.push_back({{Column(type, {2, 3, 4}, {run(inputs_, distance)})},
                         Column(ElementType::kUint8, {}, {run(labels_, 1)})});
  }

  [[nodiscard]] const Examples& examples() const { return examples_.front(); }

 private:
  static Column::Run run(const std::string& bytes, std::size_t distance) {
    return {"memory", std::as_bytes(std::span(bytes)), 2, distance};
  }

  std::string inputs_;
  std::string labels_ = std::string("\1\2", 2);
  std::vector<Examples> examples_;
};

DataConfig normalised() {
  DataConfig data = data_config("arrays", "x");
  data.mean = {0.5, 0.25};
  data.std = {0.5, 2};
  data.augment = {"crop", "flip"};
  data.crop_pixels = 2;
  return data;
}

SampleMaker maker_of(const Images& images, const DataConfig& data) {
  auto maker = SampleMaker::make(data, classifier({2, 3, 4}), images.examples());
  EXPECT_TRUE(maker.ok()) << describe(maker.error());
  return std::move(maker).value();
}

std::vector<float> seen(const SampleMaker& maker, const Images& images, const ImageView& view) {
  std::vector<std::int32_t> words(24);
  maker.write_inputs(images.examples(), 1, words, &view);
  return floats_of(words);
}

TEST(SampleMaker, ShowsTheWholeImageWithoutAShift) {
  for (const ElementType type : {ElementType::kFloat32, ElementType::kUint8}) {
    const Images images(type);
    const SampleMaker maker = maker_of(images, normalised());
    std::vector<std::int32_t> words(24);
    maker.write_inputs(images.examples(), 1, words);
    EXPECT_EQ(seen(maker, images, {}), floats_of(words));
  }
}

RC_GTEST_PROP(SampleMaker, ShowsEveryPixelOfAViewInItsPlace, ()) {
  const Images images(*rc::gen::element(ElementType::kFloat32, ElementType::kUint8));
  const bool of_bytes = images.examples().inputs.front().type() == ElementType::kUint8;
  const auto shift = rc::gen::inRange<std::int64_t>(-2, 3);
  const ImageView view{*shift, *shift, *rc::gen::arbitrary<bool>()};
  const auto floats = seen(maker_of(images, normalised()), images, view);
  const float mean[] = {0.5F, 0.25F};
  const float deviation[] = {0.5F, 2};
  for (std::int64_t i = 0; i < 24; ++i) {
    const std::int64_t c = i / 12;
    const std::int64_t y = i / 4 % 3 + view.down;
    const std::int64_t x = (view.mirrored ? 3 - i % 4 : i % 4) + view.right;
    const bool inside = y >= 0 && y < 3 && x >= 0 && x < 4;
    const auto value = static_cast<float>(inside ? 25 + c * 12 + y * 4 + x : 0);
    const float scaled = of_bytes ? value / 255.0F : value;
    RC_ASSERT(floats[static_cast<std::size_t>(i)] == (scaled - mean[c]) / deviation[c]);
  }
}

TEST(SampleMaker, ShowsAShiftedImageByHand) {
  const Images images(ElementType::kFloat32);
  DataConfig data = normalised();
  data.mean = data.std = {};
  const auto floats = seen(maker_of(images, data), images, {1, -1, false});
  // Rows 1 and 2 of the first channel of the second image, moved up and to the right.
  EXPECT_THAT(std::vector(floats.begin(), floats.begin() + 12),
              ElementsAre(0, 29, 30, 31, 0, 33, 34, 35, 0, 0, 0, 0));
}

TEST(SampleMaker, ErasesAfterNormalising) {
  const Images images(ElementType::kUint8);
  ImageView view{0, 0, true};
  const SampleMaker maker = maker_of(images, normalised());
  auto expected = seen(maker, images, view);
  view.erased = ImageBox{1, 2, 2, 1};
  for (const std::size_t i : {6U, 10U, 18U, 22U}) expected[i] = 0;
  EXPECT_EQ(seen(maker, images, view), expected);
}

TEST(SampleMaker, EnlargesTheWholeImageToItself) {
  const Images images(ElementType::kFloat32);
  const SampleMaker maker = maker_of(images, normalised());
  const auto expected = seen(maker, images, {1, -1, true});
  EXPECT_EQ(seen(maker, images, {1, -1, true, ImageBox{0, 0, 3, 4}}), expected);
}

TEST(SampleMaker, RefusesChangesOfValuesThatDoNotFit) {
  const Images images(ElementType::kUint8);
  DataConfig data = data_config("arrays", "x");
  data.augment = {"color"};
  const auto maker = SampleMaker::make(data, classifier({2, 3, 4}), images.examples());
  ASSERT_FALSE(maker.ok());
  EXPECT_THAT(maker.error().cause, HasSubstr("uint8 of 2 channels"));
}

TEST(SampleMaker, RefusesToAugmentWhatIsNoImage) {
  const Images images(ElementType::kUint8);
  const auto error = [&](const DataConfig& data, std::vector<std::int64_t> shape) {
    const auto maker = SampleMaker::make(data, classifier(std::move(shape)), images.examples());
    EXPECT_FALSE(maker.ok());
    return maker.ok() ? Error{} : maker.error();
  };
  DataConfig data = normalised();
  EXPECT_THAT(error(data, {2, 3, 1, 4}).cause, HasSubstr("[2, 3, 1, 4]"));
  data.crop_pixels = 3;
  EXPECT_THAT(error(data, {2, 3, 4}).remedy, HasSubstr("below 3"));
}

}  // namespace
}  // namespace motley
