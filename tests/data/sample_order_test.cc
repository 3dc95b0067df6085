// Which tokens are in which sample. The tokens of the corpora are their own positions, so a sample
// shows its origin.
#include <numeric>
#include <set>

#include <gmock/gmock.h>

#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "tests/data/fixture.h"

namespace motley {
namespace {

constexpr int kVocab = 65536;

std::string positions(std::size_t count) {
  std::vector<std::uint16_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), std::uint16_t{0});
  return bytes_of(tokens);
}

std::vector<Sample> epoch_of(const Source& source, std::uint64_t epoch, std::size_t context) {
  std::vector<Sample> samples;
  const std::uint64_t first = epoch * source.train_samples();
  for (std::uint64_t i = 0; i < source.train_samples(); ++i) {
    samples.push_back(train_sample(source, first + i, context));
  }
  return samples;
}

std::multiset<std::int32_t> targets_of(const std::vector<Sample>& samples) {
  std::multiset<std::int32_t> targets;
  for (const Sample& sample : samples) targets.insert(sample.targets.begin(), sample.targets.end());
  return targets;
}

TEST(Sample, IsAWindowAndItsSuccessors) {
  const DataFolder folder;
  const auto source =
      opened(data_config("tokens", folder.write("t.bin", positions(100))), model_config(8, kVocab));
  for (const Sample& sample : epoch_of(*source, 0, 8)) {
    for (std::int32_t t = 0; t < 8; ++t) {
      EXPECT_EQ(sample.inputs[t], sample.inputs[0] + t);
      EXPECT_EQ(sample.targets[t], sample.inputs[0] + t + 1);
    }
  }
}

RC_GTEST_PROP(Epoch, PredictsEachTokenOnceButForTheEnds, ()) {
  const auto context = *rc::gen::inRange<std::size_t>(1, 20);
  const auto count = *rc::gen::inRange<std::size_t>(context + 1, 500);
  const DataFolder folder;
  const auto source = opened(data_config("tokens", folder.write("t.bin", positions(count))),
                             model_config(static_cast<int>(context), kVocab));
  const auto targets = targets_of(epoch_of(*source, *rc::gen::inRange(0, 5), context));
  RC_ASSERT(targets.size() == context * source->train_samples());
  RC_ASSERT(std::set(targets.begin(), targets.end()).size() == targets.size());
  RC_ASSERT(count - targets.size() < 3 * context);
  RC_ASSERT(static_cast<std::size_t>(*targets.rbegin()) < count);
  // A range without gaps.
  RC_ASSERT(*targets.rbegin() - *targets.begin() + 1 == static_cast<int>(targets.size()));
}

RC_GTEST_PROP(HeldOutPart, SharesNoTokenWithTraining, ()) {
  const std::size_t context = 7;
  const double holdout = *rc::gen::element(0.05, 0.1, 0.33, 0.5, 0.9);
  const DataFolder folder;
  const auto source = opened(
      data_config("tokens", folder.write("t.bin", positions(*rc::gen::inRange(200, 900))), holdout),
      model_config(context, kVocab));
  std::int32_t last_trained = 0;
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    for (const Sample& sample : epoch_of(*source, epoch, context)) {
      last_trained = std::max(last_trained, sample.targets.back());
    }
  }
  RC_ASSERT(source->eval_samples() > 0U);
  for (std::uint64_t i = 0; i < source->eval_samples(); ++i) {
    RC_ASSERT(eval_sample(*source, i, context).inputs.front() > last_trained);
  }
}

class Order : public testing::Test {
 protected:
  [[nodiscard]] std::vector<Sample> epoch(std::int64_t seed, std::uint64_t number) const {
    const auto source = opened(data_config("tokens", path_), model_config(10, kVocab), seed);
    return epoch_of(*source, number, 10);
  }

 private:
  DataFolder folder_;
  std::string path_ = folder_.write("t.bin", positions(1000));
};

TEST_F(Order, IsTheSameForTheSameSeed) {
  EXPECT_EQ(epoch(5, 1), epoch(5, 1));
}

TEST_F(Order, DiffersBetweenSeeds) {
  EXPECT_NE(epoch(5, 0), epoch(6, 0));
}

TEST_F(Order, IsShuffled) {
  const auto samples = epoch(1, 0);
  EXPECT_FALSE(std::is_sorted(samples.begin(), samples.end(),
                              [](const auto& a, const auto& b) { return a.inputs < b.inputs; }));
}

TEST_F(Order, MovesTheBordersOfWindowsBetweenEpochs) {
  std::set<std::int32_t> shifts;
  for (std::uint64_t number = 0; number < 8; ++number) {
    shifts.insert(epoch(1, number).front().inputs.front() % 10);
  }
  EXPECT_GT(shifts.size(), 2U);
}

TEST(HeldOutOrder, DoesNotDependOnTheSeedAndRepeats) {
  const DataFolder folder;
  const auto data = data_config("tokens", folder.write("t.bin", positions(100)), 0.5);
  const auto a = opened(data, model_config(8, kVocab), 1);
  const auto b = opened(data, model_config(8, kVocab), 2);
  EXPECT_EQ(eval_sample(*a, 3, 8), eval_sample(*b, 3, 8));
  EXPECT_EQ(eval_sample(*a, 3 + a->eval_samples(), 8), eval_sample(*a, 3, 8));
  EXPECT_EQ(eval_sample(*a, 0, 8).inputs.front(), 50);
}

}  // namespace
}  // namespace motley
