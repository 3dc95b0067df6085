#include "data/synthetic_source.h"

#include <set>

#include <gtest/gtest.h>

#include "tests/data/fixture.h"

namespace motley {
namespace {

constexpr std::size_t kContext = 64;
constexpr int kVocab = 100;

TEST(SyntheticSource, NeedsNoFile) {
  const auto source = opened(data_config("synthetic", ""), model_config(kContext, kVocab));
  EXPECT_EQ(source->train_samples(), 65536U);
  EXPECT_EQ(source->eval_samples(), 0U);
  EXPECT_EQ(source->bytes_per_token(), 0.0);
}

TEST(SyntheticSource, GivesTokensOfTheVocabularyThatFollowEachOther) {
  const auto source = make_synthetic_source(0.1, kVocab, 1);
  for (std::uint64_t i = 0; i < 50; ++i) {
    const Sample sample = train_sample(*source, i, kContext);
    for (std::size_t t = 0; t < kContext; ++t) {
      EXPECT_TRUE(sample.targets[t] >= 0 && sample.targets[t] < kVocab);
    }
    const std::vector<std::int32_t> successors(sample.inputs.begin() + 1, sample.inputs.end());
    const std::vector<std::int32_t> targets(sample.targets.begin(), sample.targets.end() - 1);
    EXPECT_EQ(successors, targets);
  }
}

TEST(SyntheticSource, FollowsItsRuleSevenTimesInEight) {
  const auto source = make_synthetic_source(0.0, kVocab, 1);
  int followed = 0;
  constexpr int kSamples = 200;
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    const Sample sample = train_sample(*source, i, kContext);
    for (std::size_t t = 0; t < kContext; ++t) {
      followed += sample.targets[t] == (sample.inputs[t] + 7) % kVocab ? 1 : 0;
    }
  }
  const double share = followed / (1.0 * kSamples * kContext);
  EXPECT_NEAR(share, 7.0 / 8 + 1.0 / (8 * kVocab), 0.015);  // 5 standard deviations
}

TEST(SyntheticSource, ChangesItsOrderWithTheSeedButNotItsHeldOutPart) {
  const auto a = make_synthetic_source(0.1, kVocab, 1);
  const auto b = make_synthetic_source(0.1, kVocab, 2);
  EXPECT_NE(train_sample(*a, 0, kContext), train_sample(*b, 0, kContext));
  EXPECT_EQ(eval_sample(*a, 0, kContext), eval_sample(*b, 0, kContext));
}

TEST(SyntheticSource, HoldsOutSamplesThatTrainingNeverSees) {
  const auto source = make_synthetic_source(0.9, kVocab, 1);
  std::set<std::vector<std::int32_t>> trained;
  for (std::uint64_t i = 0; i < source->train_samples(); ++i) {
    trained.insert(train_sample(*source, i, kContext).inputs);
  }
  EXPECT_EQ(source->train_samples() + source->eval_samples(), 65536U);
  for (std::uint64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(trained.count(eval_sample(*source, i, kContext).inputs), 0U);
  }
}

TEST(SyntheticSource, GivesTheSameTokensWithAShorterContext) {
  const auto source = make_synthetic_source(0.0, kVocab, 1);
  auto inputs = train_sample(*source, 3, kContext).inputs;
  inputs.resize(8);
  EXPECT_EQ(train_sample(*source, 3, 8).inputs, inputs);
}

}  // namespace
}  // namespace motley
