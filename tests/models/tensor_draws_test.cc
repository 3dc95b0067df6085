// Drawn numbers as tensors: the bits of every device equal those of the CPU, for any micro-batch
// size.
#include "models/random/tensor_draws.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <rapidcheck.h>

#include "base/philox.h"
#include "device_chain.h"
#include "models/layers/placed_draws.h"
#include "models/numbers/random_numbers.h"

namespace motley::testing {
namespace {

constexpr std::uint64_t kDomain = 0x6E756D6265727321;

DrawStream some_stream() {
  // The highest bit is set in both words of the key and in one of the counter.
  return {/*seed=*/-7, /*step=*/0xF0000001, /*layer=*/5, /*index=*/200};
}

std::vector<DrawnNumbers> all_kinds() {
  return {{.kind = DrawKind::kUniform},
          {.kind = DrawKind::kNormal},
          {.kind = DrawKind::kExponential},
          {.kind = DrawKind::kIntegers, .low = -3, .count = 7},
          {.kind = DrawKind::kIntegers, .count = std::uint64_t{1} << 32}};
}

TEST(DrawStream, FollowsPhilox) {
  constexpr std::uint64_t kFirst = (std::uint64_t{1} << 34) - 70;  // blocks reach 2^32 after it
  std::vector<std::uint32_t> words(200);
  DrawStream(11, 3, 4, 6).words(kFirst, words);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::uint64_t number = kFirst + i;
    const std::uint64_t block = number / 64 * 16 + number % 16;
    const auto of_block =
        philox4x32(11 ^ kDomain, {static_cast<std::uint32_t>(block), 3,
                                  static_cast<std::uint32_t>(block >> 32), 4U << 8 | 6U});
    EXPECT_EQ(words[i], of_block[number % 64 / 16]) << i;
  }
}

TEST(DrawStream, DoesNotDependOnHowTheWordsAreSplit) {
  EXPECT_TRUE(rc::check([]() {
    const auto first = *rc::gen::inRange<std::size_t>(0, 500);
    const auto count = *rc::gen::inRange<std::size_t>(0, 500);
    std::vector<std::uint32_t> all(1000);
    some_stream().words(0, all);
    std::vector<std::uint32_t> part(count);
    some_stream().words(first, part);
    RC_ASSERT(
        std::equal(part.begin(), part.end(), all.begin() + static_cast<std::ptrdiff_t>(first)));
  }));
}

TEST(TensorDraws, HaveTheProcessorsBitsOnTheDevice) {
  const c10::InferenceMode guard;
  constexpr std::int64_t kMoreThanASlice = (std::int64_t{1} << 20) + 777;
  for (const DrawnNumbers& drawn : all_kinds()) {
    for (const std::uint64_t first :
         {std::uint64_t{0}, std::uint64_t{999}, std::uint64_t{1} << 45}) {
      for (const std::int64_t count :
           {std::int64_t{0}, std::int64_t{1}, std::int64_t{65}, kMoreThanASlice}) {
        const at::Tensor there =
            draw_numbers(some_stream(), drawn, first, count, tested_device().torch());
        EXPECT_TRUE(there.cpu().equal(draw_numbers(some_stream(), drawn, first, count, at::kCPU)))
            << static_cast<int>(drawn.kind) << " " << first << " " << count;
      }
    }
  }
}

TEST(TensorDraws, ConvertTheStreamsWords) {
  const c10::InferenceMode guard;
  std::vector<std::uint32_t> words(2 * 5000);
  some_stream().words(2 * 10, words);
  const at::Tensor normal =
      draw_numbers(some_stream(), {.kind = DrawKind::kNormal}, 20, 5000, at::kCPU);
  const at::Tensor whole = draw_numbers(
      some_stream(), {.kind = DrawKind::kIntegers, .low = 4, .count = 1000}, 10, 5000, at::kCPU);
  for (std::size_t i = 0; i < 5000; ++i) {
    EXPECT_EQ(normal.data_ptr<float>()[i], normal_number(words[i]));
    EXPECT_EQ(whole.data_ptr<std::int64_t>()[i],
              integer_number(std::uint64_t{words[2 * i]} << 32 | words[2 * i + 1], 4, 1000));
  }
}

TEST(TensorDraws, HaveTheMomentsOfTheirDistributions) {
  const c10::InferenceMode guard;
  constexpr std::int64_t kCount = 1 << 20;
  const auto expect = [&](const DrawnNumbers& drawn, double mean, double variance, double third,
                          double fourth) {  // central moments
    const at::Tensor x =
        draw_numbers(some_stream(), drawn, 0, kCount, at::kCPU).to(at::kDouble) - mean;
    const double spread = std::sqrt(variance);
    const auto moment = [&](int k) {
      return x.pow(k).mean().item().toDouble() / std::pow(spread, k);
    };
    EXPECT_NEAR(moment(1), 0, 0.005);  // 5 standard deviations
    EXPECT_NEAR(moment(2), 1, 5 * std::sqrt((fourth - 1) / kCount));
    EXPECT_NEAR(moment(3), third, 0.13);
    EXPECT_NEAR(moment(4), fourth, 0.1 * fourth);
  };
  expect({.kind = DrawKind::kUniform}, 0.5, 1.0 / 12, 0, 1.8);
  expect({.kind = DrawKind::kNormal}, 0, 1, 0, 3);
  expect({.kind = DrawKind::kExponential}, 1, 1, 2, 9);
  expect({.kind = DrawKind::kIntegers, .low = -2, .count = 5}, 0, 2, 0, 1.7);
}

// The numbers of all samples in a step with micro-batches of `samples` samples.
at::Tensor of_all(const DrawnNumbers& drawn,
                  std::int64_t all,
                  std::int64_t samples,
                  bool training = true,
                  std::int64_t step = 3) {
  const std::int64_t dim = static_cast<std::int64_t>(drawn.batch_dim().value());
  std::vector<at::Tensor> parts;
  for (std::int64_t m = 0; m < all / samples; ++m) {
    const MicroContext micro{.seed = 8, .step = step, .micro = m, .training = training};
    parts.push_back(PlacedDraws(micro, 2, samples)
                        .numbers(drawn, *drawn.sizes_of(samples), tested_device().torch())
                        .cpu());
    EXPECT_TRUE(parts.back().is_contiguous());
  }
  return at::cat(parts, dim);
}

std::vector<DrawnNumbers> with_sizes(const std::vector<BatchInteger>& sizes) {
  std::vector<DrawnNumbers> kinds = all_kinds();
  for (DrawnNumbers& drawn : kinds) drawn.sizes = sizes;
  return kinds;
}

TEST(TensorDraws, OfASampleDoNotDependOnTheMicroBatchesSize) {
  const c10::InferenceMode guard;
  const std::vector<std::vector<BatchInteger>> shapes = {{{0, 1}},
                                                         {{0, 1}, {5, 0}},
                                                         {{0, 3}, {2, 0}},
                                                         {{7, 0}, {0, 1}, {2, 0}},
                                                         {{2, 0}, {3, 0}, {0, 1}}};
  for (const auto& sizes : shapes) {
    for (const DrawnNumbers& drawn : with_sizes(sizes)) {
      const at::Tensor whole = of_all(drawn, 12, 12);
      for (const std::int64_t samples : {1, 2, 3, 4, 6}) {
        EXPECT_TRUE(of_all(drawn, 12, samples).equal(whole)) << samples;
      }
    }
  }
}

TEST(TensorDraws, WithoutTheBatchAreTheSameInAllMicroBatches) {
  const c10::InferenceMode guard;
  for (const DrawnNumbers& drawn : with_sizes({{40, 0}, {3, 0}})) {
    const auto numbers = [&](MicroContext micro, std::int64_t samples) {
      return PlacedDraws(micro, 2, samples).numbers(drawn, {40, 3}, at::kCPU);
    };
    const at::Tensor base = numbers({.seed = 8, .step = 3, .micro = 0}, 4);
    EXPECT_TRUE(numbers({.seed = 8, .step = 3, .micro = 5}, 2).equal(base));
    EXPECT_FALSE(numbers({.seed = 8, .step = 4, .micro = 0}, 4).equal(base));
    EXPECT_FALSE(numbers({.seed = 9, .step = 3, .micro = 0}, 4).equal(base));
  }
}

TEST(TensorDraws, DependOnLayerAndIndex) {
  const c10::InferenceMode guard;
  const MicroContext micro{.seed = 8, .step = 3, .micro = 1};
  const DrawnNumbers drawn{.kind = DrawKind::kNormal, .sizes = {{0, 1}, {9, 0}}, .index = 1};
  DrawnNumbers other = drawn;
  other.index = 2;
  const at::Tensor base = PlacedDraws(micro, 2, 3).numbers(drawn, {3, 9}, at::kCPU);
  EXPECT_TRUE(PlacedDraws(micro, 2, 3).numbers(drawn, {3, 9}, at::kCPU).equal(base));
  EXPECT_FALSE(PlacedDraws(micro, 3, 3).numbers(drawn, {3, 9}, at::kCPU).equal(base));
  EXPECT_FALSE(PlacedDraws(micro, 2, 3).numbers(other, {3, 9}, at::kCPU).equal(base));
}

TEST(TensorDraws, AreTheSameInEachEvaluationAndOthersForEachSample) {
  const c10::InferenceMode guard;
  const DrawnNumbers drawn{.kind = DrawKind::kNormal, .sizes = {{0, 1}, {4, 0}}};
  const at::Tensor first = of_all(drawn, 8, 2, /*training=*/false, /*step=*/10);
  EXPECT_TRUE(of_all(drawn, 8, 4, /*training=*/false, /*step=*/20).equal(first));
  EXPECT_FALSE(of_all(drawn, 8, 2).equal(first));
  const MicroContext next{.seed = 8, .step = 10, .micro = 0, .training = false, .first_sample = 4};
  EXPECT_TRUE(PlacedDraws(next, 2, 2).numbers(drawn, {2, 4}, at::kCPU).equal(first.slice(0, 4, 6)));
}

}  // namespace
}  // namespace motley::testing
