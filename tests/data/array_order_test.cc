// Selection and order of an array's training samples, and augmentation of images. Each sample
// contains its own number.
#include <cmath>
#include <numeric>
#include <set>

#include <gmock/gmock.h>

#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "data/augmentation/image_view.h"
#include "tests/data/array_fixture.h"

namespace motley {
namespace {

using testing::ElementsAre;

// The input and the target of a sample are its number.
const SampleFormat kNumbers = [] {
  SampleFormat format = classifier({1}, 100'000);
  format.inputs.front() = {"", {Dtype::kInt64, {1}}, 100'000};
  return format;
}();

class Numbered {
 public:
  explicit Numbered(std::int64_t samples) { write("", 0, samples); }

  void hold_out(std::int64_t first, std::int64_t samples) const { write("eval_", first, samples); }

  [[nodiscard]] std::unique_ptr<const Source> source(double holdout, std::int64_t seed = 1) const {
    return opened(data_config("arrays", folder_.root(), holdout), kNumbers, seed);
  }

 private:
  void write(const std::string& prefix, std::int64_t first, std::int64_t samples) const {
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(samples));
    std::iota(numbers.begin(), numbers.end(), first);
    folder_.write(prefix + "inputs.npy", npy_longs({samples, 1}, numbers));
    folder_.write(prefix + "targets.npy", npy_longs({samples}, numbers));
  }

  DataFolder folder_;
};

std::vector<std::int32_t> epoch_of(const Source& source, std::uint64_t epoch) {
  std::vector<std::int32_t> numbers;
  for (std::uint64_t i = 0; i < source.train_samples(); ++i) {
    const Sample sample = train_sample(source, epoch * source.train_samples() + i, kNumbers);
    EXPECT_EQ(sample.inputs, sample.targets);
    numbers.push_back(sample.inputs.front());
  }
  return numbers;
}

std::vector<std::int32_t> held_out_of(const Source& source) {
  std::vector<std::int32_t> numbers;
  for (std::uint64_t i = 0; i < source.eval_samples(); ++i) {
    numbers.push_back(eval_sample(source, i, kNumbers).inputs.front());
  }
  return numbers;
}

RC_GTEST_PROP(ArrayEpoch, HasEachSampleOnceAndNoneThatIsHeldOut, ()) {
  const auto samples = *rc::gen::inRange<std::int64_t>(10, 600);
  const double holdout = *rc::gen::element(0.0, 0.1, 0.3, 0.9);
  const Numbered arrays(samples);
  const auto source = arrays.source(holdout, *rc::gen::inRange(0, 1000));
  const auto trained = epoch_of(*source, *rc::gen::inRange(0, 4));
  const auto held_out = held_out_of(*source);
  RC_ASSERT(held_out.size() == static_cast<std::size_t>(static_cast<double>(samples) * holdout));
  std::set<std::int32_t> all(trained.begin(), trained.end());
  all.insert(held_out.begin(), held_out.end());
  RC_ASSERT(trained.size() + held_out.size() == static_cast<std::size_t>(samples));
  RC_ASSERT(all.size() == static_cast<std::size_t>(samples));
}

TEST(ArrayOrder, DependsOnSeedAndEpochAlone) {
  const Numbered arrays(100);
  EXPECT_EQ(epoch_of(*arrays.source(0.1, 5), 1), epoch_of(*arrays.source(0.1, 5), 1));
  EXPECT_NE(epoch_of(*arrays.source(0.1, 5), 1), epoch_of(*arrays.source(0.1, 5), 0));
  EXPECT_NE(epoch_of(*arrays.source(0.1, 5), 1), epoch_of(*arrays.source(0.1, 6), 1));
}

// Files are often sorted by their targets.
TEST(ArrayHoldout, IsSpreadOverTheFileWhateverTheSeed) {
  const Numbered arrays(1000);
  const auto held_out = held_out_of(*arrays.source(0.2, 1));
  EXPECT_EQ(held_out, held_out_of(*arrays.source(0.2, 2)));
  const auto early = std::ranges::count_if(held_out, [](std::int32_t n) { return n < 500; });
  EXPECT_NEAR(static_cast<double>(early), 100, 21);  // three standard deviations
}

TEST(ArrayHoldout, IsWhatTheFilesHoldOut) {
  const Numbered arrays(20);
  arrays.hold_out(50, 3);
  const auto source = arrays.source(0.5);
  EXPECT_EQ(source->train_samples(), 20U);
  EXPECT_THAT(held_out_of(*source), ElementsAre(50, 51, 52));
  EXPECT_EQ(eval_sample(*source, 4, kNumbers).inputs.front(), 51);
}

DataConfig augmented(std::vector<std::string> how, int pixels = 4) {
  DataConfig data = data_config("arrays", "");
  data.augment = std::move(how);
  data.crop_pixels = pixels;
  return data;
}

TEST(ViewDraw, IsAFunctionOfSeedEpochAndSample) {
  const ViewDraw draw(augmented({"flip", "crop"}), 7, 32, 32);
  const ImageView view = draw.view(1, 2);
  EXPECT_EQ(view, ViewDraw(augmented({"flip", "crop"}), 7, 32, 32).view(1, 2));
  int others = 0;
  for (std::uint64_t i = 0; i < 20; ++i) {
    others += draw.view(1 + i, 3) == view ? 0 : 1;
    others += draw.view(1, 3 + i) == view ? 0 : 1;
    others += ViewDraw(augmented({"flip", "crop"}), 8 + i, 32, 32).view(1, 2) == view ? 0 : 1;
  }
  EXPECT_GT(others, 50);
}

TEST(ViewDraw, MirrorsHalfTheTimeAndShiftsEvenly) {
  const ViewDraw draw(augmented({"crop", "flip"}, 2), 1, 32, 32);
  constexpr int kDraws = 5000;
  int mirrored = 0;
  std::map<std::pair<std::int64_t, std::int64_t>, int> shifts;
  for (std::uint64_t sample = 0; sample < kDraws; ++sample) {
    const ImageView view = draw.view(0, sample);
    mirrored += view.mirrored ? 1 : 0;
    ++shifts[{view.down, view.right}];
  }
  EXPECT_NEAR(mirrored, kDraws / 2, 3 * std::sqrt(kDraws) / 2);
  EXPECT_EQ(shifts.size(), 25U);
  for (const auto& [shift, count] : shifts) {
    EXPECT_LE(std::max(std::abs(shift.first), std::abs(shift.second)), 2);
    EXPECT_NEAR(count, kDraws / 25, 5 * std::sqrt(kDraws / 25));
  }
}

TEST(ViewDraw, DoesOnlyWhatIsAskedFor) {
  EXPECT_TRUE(ViewDraw(augmented({}), 1, 32, 32).is_plain());
  for (std::uint64_t sample = 0; sample < 50; ++sample) {
    EXPECT_FALSE(ViewDraw(augmented({"crop"}), 1, 32, 32).view(0, sample).mirrored);
    const ImageView flipped = ViewDraw(augmented({"flip"}), 1, 32, 32).view(0, sample);
    EXPECT_EQ(flipped.down, 0);
    EXPECT_EQ(flipped.right, 0);
  }
}

// The distribution of torchvision's RandomResizedCrop and RandomErasing, with its defaults.
TEST(ViewDraw, DrawsBoxesInsideTheirRanges) {
  const ViewDraw draw(augmented({"resized_crop", "erase", "color"}), 3, 96, 128);
  constexpr int kDraws = 2000;
  int erased = 0;
  double area = 0;
  for (std::uint64_t sample = 0; sample < kDraws; ++sample) {
    const ImageView view = draw.view(4, sample);
    ASSERT_TRUE(view.box && view.colours);
    const ImageBox& box = *view.box;
    EXPECT_GE(box.top, 0);
    EXPECT_GE(box.left, 0);
    EXPECT_LE(box.top + box.height, 96);
    EXPECT_LE(box.left + box.width, 128);
    const double share = static_cast<double>(box.height * box.width) / (96 * 128);
    const double ratio = static_cast<double>(box.width) / static_cast<double>(box.height);
    EXPECT_GE(share, 0.07);
    EXPECT_GE(ratio, 0.75 - 0.05);
    EXPECT_LE(ratio, 4.0 / 3 + 0.05);
    area += share;
    if (!view.erased) continue;
    ++erased;
    EXPECT_LT(view.erased->height, 96);
    EXPECT_LT(view.erased->width, 128);
    EXPECT_LE(view.erased->top + view.erased->height, 96);
    EXPECT_LE(view.erased->left + view.erased->width, 128);
  }
  EXPECT_NEAR(erased, kDraws / 2, 3 * std::sqrt(kDraws) / 2);
  // torchvision's own mean for this size is in make_augmentation_golden.py.
  EXPECT_NEAR(area / kDraws, 0.4355, 0.03);
}

TEST(ViewDraw, DrawsEveryOrderOfColourChanges) {
  const ViewDraw draw(augmented({"color"}), 3, 8, 8);
  std::map<std::array<ColourChange, 3>, int> orders;
  for (std::uint64_t sample = 0; sample < 600; ++sample) {
    const ColourFactors colours = draw.view(0, sample).colours.value();
    ++orders[colours.order];
    for (const float factor : colours.factors) {
      EXPECT_GE(factor, 0.6F);
      EXPECT_LE(factor, 1.4F);
    }
  }
  EXPECT_EQ(orders.size(), 6U);
  for (const auto& [order, count] : orders) EXPECT_NEAR(count, 100, 50);
}

// Adding a change leaves the draws of the others as they are.
TEST(ViewDraw, DrawsEachChangeByItself) {
  const ImageView all =
      ViewDraw(augmented({"flip", "crop", "resized_crop", "color", "erase"}), 5, 20, 30).view(3, 9);
  const ImageView first = ViewDraw(augmented({"flip", "crop"}), 5, 20, 30).view(3, 9);
  EXPECT_EQ((ImageView{all.down, all.right, all.mirrored}), first);
  EXPECT_EQ(all.box, ViewDraw(augmented({"resized_crop"}), 5, 20, 30).view(3, 9).box);
  EXPECT_EQ(all.erased, ViewDraw(augmented({"erase"}), 5, 20, 30).view(3, 9).erased);
}

}  // namespace
}  // namespace motley
