// Each kernel compared with its formula in double, for lengths near the vector width and several
// alignments.
#include "models/kernels/kernels.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <rapidcheck.h>

#include "base/philox.h"
#include "models/kernels/simd.h"

namespace motley::kernels {
namespace {

std::vector<float> draws(std::uint64_t key, std::size_t count, float reach) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = (2 * to_unit_float(philox4x32(key, 1, i)[0]) - 1) * reach;
  }
  return values;
}

double gelu(double u) {
  return 0.5 * u * (1 + std::tanh(std::sqrt(2 / M_PI) * (u + 0.044715 * u * u * u)));
}

std::size_t any_size(std::size_t most) {
  return *rc::gen::inRange<std::size_t>(1, most);
}

TEST(ExpFast, StaysWithinTwoRoundings) {
  for (float x = -86.9F; x < 87.0F; x += 0.001F) {
    const double exact = std::exp(static_cast<double>(x));
    ASSERT_LE(std::abs(exp_fast(x) - exact), 1.2e-7 * exact) << x;
  }
}

TEST(BiasGelu, FollowsItsFormula) {
  EXPECT_TRUE(rc::check([](std::uint64_t key) {
    const std::size_t count = any_size(100);
    std::vector<float> u = draws(key, count, 12.0F);
    const std::vector<float> bias = draws(key + 1, count, 1.0F);
    std::vector<float> g(count);
    const std::vector<float> before = u;
    bias_gelu(u.data(), bias.data(), g.data(), 1, static_cast<std::int64_t>(count));
    for (std::size_t i = 0; i < count; ++i) {
      RC_ASSERT(u[i] == before[i] + bias[i]);
      RC_ASSERT(std::abs(g[i] - gelu(u[i])) <= 2e-6 * std::max(1.0, std::abs(gelu(u[i]))));
    }
  }));
}

TEST(GeluBackward, GivesTheSlopeAndTheActivation) {
  EXPECT_TRUE(rc::check([](std::uint64_t key) {
    const std::size_t count = any_size(100);
    const std::vector<float> before = draws(key, count, 12.0F);
    std::vector<float> u = before;
    std::vector<float> grad(count, 1.0F);
    gelu_backward(u.data(), grad.data(), static_cast<std::int64_t>(count));
    for (std::size_t i = 0; i < count; ++i) {
      const double x = before[i];
      const double slope = (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5;
      RC_ASSERT(std::abs(grad[i] - slope) <= 1e-5);
      RC_ASSERT(std::abs(u[i] - gelu(x)) <= 2e-6 * std::max(1.0, std::abs(x)));
    }
  }));
}

TEST(CausalSoftmax, SumsToOneOverThePastOnly) {
  EXPECT_TRUE(rc::check([](std::uint64_t key) {
    const auto rows = static_cast<std::int64_t>(any_size(20));
    const auto first = static_cast<std::int64_t>(any_size(70));
    const std::int64_t columns = first + rows;
    const std::int64_t stride = columns + 3;
    const std::vector<float> before = draws(key, static_cast<std::size_t>(rows * stride), 30.0F);
    std::vector<float> p = before;
    causal_softmax(p.data(), rows, columns, stride, first);
    for (std::int64_t r = 0; r < rows; ++r) {
      const float* in = before.data() + r * stride;
      double sum = 0;
      for (std::int64_t j = 0; j <= first + r; ++j) sum += std::exp(static_cast<double>(in[j]));
      for (std::int64_t j = 0; j < columns; ++j) {
        const double want = j <= first + r ? std::exp(static_cast<double>(in[j])) / sum : 0;
        RC_ASSERT(std::abs(p[static_cast<std::size_t>(r * stride + j)] - want) <= 1e-6);
      }
      RC_ASSERT(std::equal(in + columns, in + stride, p.data() + r * stride + columns));
    }
  }));
}

TEST(SoftmaxBackward, FollowsItsFormula) {
  EXPECT_TRUE(rc::check([](std::uint64_t key) {
    const std::size_t count = any_size(100);
    const std::vector<float> p = draws(key, count, 1.0F);
    const std::vector<float> before = draws(key + 1, count, 1.0F);
    std::vector<float> grad = before;
    const auto columns = static_cast<std::int64_t>(count);
    softmax_backward(p.data(), grad.data(), 1, columns, columns);
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += static_cast<double>(p[i]) * before[i];
    for (std::size_t i = 0; i < count; ++i) {
      RC_ASSERT(std::abs(grad[i] - p[i] * (before[i] - sum)) <= 1e-5);
    }
  }));
}

TEST(CrossEntropy, IsTheLossAndItsGradient) {
  EXPECT_TRUE(rc::check([](std::uint64_t key) {
    const std::size_t vocab = any_size(100);
    const std::vector<float> before = draws(key, vocab, 40.0F);
    std::vector<float> logits = before;
    const auto target = static_cast<std::int64_t>(key % vocab);
    double sum = 0;
    for (const float x : before) sum += std::exp(static_cast<double>(x));
    const double loss =
        cross_entropy(logits.data(), &target, 1, static_cast<std::int64_t>(vocab), true);
    RC_ASSERT(std::abs(loss - (std::log(sum) - before[key % vocab])) <= 1e-5);
    for (std::size_t i = 0; i < vocab; ++i) {
      const double want =
          std::exp(static_cast<double>(before[i])) / sum - (i == key % vocab ? 1 : 0);
      RC_ASSERT(std::abs(logits[i] - want) <= 1e-6);
    }
  }));
}

TEST(WeightedCrossEntropy, FollowsItsFormula) {
  EXPECT_TRUE(rc::check([](std::uint64_t key) {
    const std::size_t vocab = any_size(100);
    const std::vector<float> before = draws(key, vocab, 20.0F);
    std::vector<float> weights = draws(key + 1, vocab, 1.0F);
    for (float& weight : weights) weight = weight < -0.5F ? 0.0F : weight + 1.0F;
    const bool has_weights = *rc::gen::arbitrary<bool>();
    const double smoothing = *rc::gen::element(0.0, 0.1, 0.9);
    const std::size_t target = key % vocab;
    double sum = 0;
    for (const float x : before) sum += std::exp(static_cast<double>(x));
    const auto weight = [&](std::size_t c) { return has_weights ? weights[c] : 1.0; };
    double loss = 0;
    double all = 0;
    std::vector<double> shares(vocab);  // the weights of each log-probability
    for (std::size_t c = 0; c < vocab; ++c) {
      shares[c] = smoothing / static_cast<double>(vocab) * weight(c) +
                  (c == target ? (1 - smoothing) * weight(c) : 0);
      loss -= shares[c] * (before[c] - std::log(sum));
      all += shares[c];
    }
    std::vector<float> logits = before;
    const auto id = static_cast<std::int64_t>(target);
    const double got =
        weighted_cross_entropy(logits.data(), &id, 1, static_cast<std::int64_t>(vocab),
                               has_weights ? weights.data() : nullptr, smoothing, true);
    RC_ASSERT(std::abs(got - loss) <= 1e-6 * std::max(1.0, std::abs(loss)));
    for (std::size_t c = 0; c < vocab; ++c) {
      const double want = all * std::exp(static_cast<double>(before[c])) / sum - shares[c];
      RC_ASSERT(std::abs(logits[c] - want) <= 1e-6);
    }
  }));
}

TEST(WeightedCrossEntropy, IsThePlainOneWithoutWeights) {
  std::vector<float> plain = draws(3, 150, 9.0F);
  std::vector<float> weighted = plain;
  const std::vector<std::int64_t> targets = {7, 0, 49};
  const double loss = cross_entropy(plain.data(), targets.data(), 3, 50, true);
  EXPECT_DOUBLE_EQ(weighted_cross_entropy(weighted.data(), targets.data(), 3, 50, nullptr, 0, true),
                   loss);
  for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(weighted[i], plain[i], 1e-7);
}

TEST(TargetRanks, CountHigherScoresAndEarlierEqualOnes) {
  const std::vector<float> rows = {1, 3,   2, 3,  //
                                   1, 3,   2, 3,  //
                                   0, 0,   0, 0,  //
                                   5, NAN, 1, 2, NAN, 0, 0, 0};
  const std::vector<std::int64_t> targets = {1, 3, 2, 0, 0};
  std::vector<std::int64_t> ranks(5);
  target_ranks(rows.data(), targets.data(), 5, 4, ranks.data());
  EXPECT_EQ(ranks, (std::vector<std::int64_t>{0, 1, 2, 1, 3}));
}

TEST(CrossEntropy, StaysFiniteForHugeScores) {
  std::vector<float> logits{3e38F, -3e38F, 0.0F};
  const std::int64_t target = 0;
  EXPECT_EQ(cross_entropy(logits.data(), &target, 1, 3, true), 0.0);
}

TEST(CrossEntropy, PassesNotANumberOn) {
  std::vector<float> logits(40, 1.0F);
  logits[20] = NAN;
  const std::int64_t target = 0;
  EXPECT_TRUE(std::isnan(cross_entropy(logits.data(), &target, 1, 40, true)));
  EXPECT_TRUE(std::isnan(logits[3]));
}

TEST(Kernels, GiveTheSameBitsAtEveryAlignment) {
  EXPECT_TRUE(rc::check([](std::uint64_t key) {
    const std::size_t vocab = any_size(200);
    const std::size_t shift = any_size(16);
    const std::vector<float> row = draws(key, vocab, 9.0F);
    std::vector<float> straight = row;
    std::vector<float> shifted(shift);
    shifted.insert(shifted.end(), row.begin(), row.end());
    const std::int64_t target = 0;
    const auto size = static_cast<std::int64_t>(vocab);
    RC_ASSERT(cross_entropy(straight.data(), &target, 1, size, true) ==
              cross_entropy(shifted.data() + shift, &target, 1, size, true));
    RC_ASSERT(std::equal(straight.begin(), straight.end(),
                         shifted.begin() + static_cast<std::ptrdiff_t>(shift)));
  }));
}

TEST(AddColumnSums, AddsEveryRow) {
  const std::vector<float> x{1, 2, 3, 10, 20, 30};
  std::vector<float> sums{100, 200, 300};
  add_column_sums(x.data(), sums.data(), 2, 3);
  EXPECT_EQ(sums, (std::vector<float>{111, 222, 333}));
}

}  // namespace
}  // namespace motley::kernels
