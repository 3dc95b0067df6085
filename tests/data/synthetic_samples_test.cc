#include "data/synthetic_samples.h"

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include <gmock/gmock.h>

#include "tests/data/array_fixture.h"

namespace motley {
namespace {

SampleFormat regression(std::vector<std::int64_t> input, std::vector<std::int64_t> target) {
  SampleFormat format;
  format.inputs = {{"", {Dtype::kFloat32, std::move(input)}, {}}};
  format.target.shape = std::move(target);
  return format;
}

SampleFormat of_integers(std::int64_t limit, SampleFormat format) {
  format.inputs.front().tensor.type = Dtype::kInt64;
  format.inputs.front().limit = limit;
  return format;
}

std::vector<float> inputs_of(const Source& source,
                             std::uint64_t index,
                             const SampleFormat& format) {
  return floats_of(train_sample(source, index, format).inputs);
}

double product(const std::vector<float>& a, const std::vector<float>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0) / static_cast<double>(a.size());
}

TEST(SyntheticSamples, AreOpenedForAModelThatTakesNoTokens) {
  const SampleFormat format = classifier({3, 8, 8});
  const auto source = opened(data_config("synthetic", "", 0.25), format);
  EXPECT_EQ(source->train_samples(), 49152U);
  EXPECT_EQ(source->eval_samples(), 16384U);
  EXPECT_EQ(source->bytes_per_token(), 0.0);
}

// Noise with standard deviation 1 around +1 or -1.
TEST(SyntheticSamples, HaveFloatsAroundOneAndMinusOne) {
  const SampleFormat format = classifier({5000});
  const auto source = make_synthetic_samples(0, format, 1);
  const auto x = inputs_of(*source, 0, format);
  EXPECT_NEAR(product(x, x), 2, 0.15);
  EXPECT_NEAR(std::accumulate(x.begin(), x.end(), 0.0) / 5000, 0, 0.1);
}

// A class has a pattern: samples of one class are correlated, those of different classes are not.
TEST(SyntheticSamples, CanBeToldApartByTheirClass) {
  const SampleFormat format = classifier({2000}, 3);
  const auto source = make_synthetic_samples(0, format, 1);
  std::map<std::int32_t, std::vector<float>> first;
  for (std::uint64_t i = 0; i < 30; ++i) {
    const Sample sample = train_sample(*source, i, format);
    ASSERT_TRUE(sample.targets[0] >= 0 && sample.targets[0] < 3);
    const auto floats = floats_of(sample.inputs);
    for (const auto& [label, other] : first) {
      EXPECT_NEAR(product(floats, other), label == sample.targets[0] ? 1 : 0, 0.2);
    }
    first.emplace(sample.targets[0], floats);
  }
  EXPECT_EQ(first.size(), 3U);
}

// Each part of the input depends on the corresponding part of the target.
TEST(SyntheticSamples, FollowFloatTargetsPartByPart) {
  const SampleFormat format = regression({4000}, {2});
  const auto source = make_synthetic_samples(0, format, 1);
  const auto half = [&](const Sample& sample, int which) {
    const auto floats = floats_of(sample.inputs);
    return std::vector(floats.begin() + which * 2000, floats.begin() + (which + 1) * 2000);
  };
  const Sample one = train_sample(*source, 0, format);
  const Sample other = train_sample(*source, 1, format);
  const auto a = floats_of(one.targets);
  const auto b = floats_of(other.targets);
  for (const int which : {0, 1}) {
    const auto at = static_cast<std::size_t>(which);
    EXPECT_TRUE(a[at] >= -1 && a[at] < 1);
    EXPECT_NEAR(product(half(one, which), half(other, which)), a[at] * b[at], 0.12);
  }
  EXPECT_NE(a[0], a[1]);
}

TEST(SyntheticSamples, HaveIntegersThatCountOnFromTheTarget) {
  const SampleFormat format = of_integers(50, classifier({2000}, 50));
  const auto source = make_synthetic_samples(0, format, 1);
  const Sample sample = train_sample(*source, 0, format);
  int followed = 0;
  for (std::int32_t i = 0; i < 2000; ++i) {
    const std::int32_t value = sample.inputs[static_cast<std::size_t>(i)];
    ASSERT_TRUE(value >= 0 && value < 50);
    followed += value == (sample.targets[0] + 7 * i) % 50 ? 1 : 0;
  }
  EXPECT_NEAR(followed / 2000.0, 7.0 / 8 + 1.0 / 400, 0.03);
}

TEST(SyntheticSamples, HaveIntegersThatFollowAFloat) {
  const SampleFormat format = of_integers(10, regression({100}, {}));
  const auto source = make_synthetic_samples(0, format, 1);
  for (std::uint64_t i = 0; i < 400; ++i) {
    const Sample sample = train_sample(*source, i, format);
    const auto tenth =
        static_cast<std::int32_t>(std::floor((floats_of(sample.targets)[0] + 1) * 5));
    int followed = 0;
    for (std::int32_t j = 0; j < 100; ++j) {
      followed += sample.inputs[static_cast<std::size_t>(j)] == (tenth + 7 * j) % 10 ? 1 : 0;
    }
    EXPECT_GT(followed, 70);
  }
}

TEST(SyntheticSamples, ShareADrawWhereTargetsAreMoreThanInputs) {
  const SampleFormat format = classifier({2}, 1000);
  SampleFormat wide = format;
  wide.target.shape = {4};
  const Sample sample = train_sample(*make_synthetic_samples(0, wide, 1), 0, wide);
  EXPECT_EQ(sample.targets[0], sample.targets[1]);
  EXPECT_EQ(sample.targets[2], sample.targets[3]);
  EXPECT_NE(sample.targets[0], sample.targets[2]);
}

TEST(SyntheticSamples, ChangeTheirOrderWithTheSeedButNotTheirHeldOutPart) {
  const SampleFormat format = classifier({20});
  const auto a = make_synthetic_samples(0.1, format, 1);
  const auto b = make_synthetic_samples(0.1, format, 2);
  EXPECT_EQ(train_sample(*a, 7, format),
            train_sample(*make_synthetic_samples(0.1, format, 1), 7, format));
  EXPECT_NE(train_sample(*a, 7, format), train_sample(*b, 7, format));
  EXPECT_EQ(eval_sample(*a, 7, format), eval_sample(*b, 7, format));
  std::set<std::vector<std::int32_t>> trained;
  for (std::uint64_t i = 0; i < a->train_samples(); ++i) {
    trained.insert(train_sample(*a, i, format).inputs);
  }
  EXPECT_EQ(trained.size(), a->train_samples());
  EXPECT_EQ(trained.count(eval_sample(*a, 7, format).inputs), 0U);
}

TEST(SyntheticSamples, AreToldFromThoseOfOtherModels) {
  const auto identity = [](const SampleFormat& format) {
    return make_synthetic_samples(0, format, 1)->identity();
  };
  EXPECT_EQ(identity(classifier({4})), identity(classifier({4})));
  EXPECT_NE(identity(classifier({4})), identity(classifier({2, 2})));
  EXPECT_NE(identity(classifier({4})), identity(classifier({4}, 11)));
}

}  // namespace
}  // namespace motley
