#include "compression/feedback/gradient_compressor.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>

#include <gmock/gmock.h>

#include "tests/compression/read_sparse.h"
#include "tests/support/property.h"

namespace motley {
namespace {

using testing::HasSubstr;

constexpr const char* kLossyChains[] = {"fp16",
                                        "bf16",
                                        "int8",
                                        "int4",
                                        "int8|zstd(1)",
                                        "topk(0.01)",
                                        "topk(0.1)|fp16",
                                        "topk(0.1)|bf16",
                                        "topk(0.25)|int8",
                                        "topk(0.1)|int8|zstd(1)"};

std::unique_ptr<GradientCompressor> compressor_of(const CompressorOptions& options,
                                                  std::size_t count) {
  auto compressor = GradientCompressor::make(options, count);
  EXPECT_TRUE(compressor.ok()) << options.chain;
  return std::move(compressor).value();
}

Bytes sent(GradientCompressor& compressor, const Floats& gradient, std::int64_t step = 0) {
  Bytes wire(compressor.bytes_max() + 1, std::byte{0xA5});
  const std::size_t bytes =
      compressor.encode(gradient, step, std::span(wire).first(wire.size() - 1));
  EXPECT_EQ(wire.back(), std::byte{0xA5});
  wire.resize(bytes);
  return wire;
}

Floats received(const GradientCompressor& compressor, const Bytes& wire, std::size_t count) {
  Floats values(count);
  EXPECT_TRUE(compressor.codec().decode(wire, values).ok());
  return values;
}

Floats copy_of(std::span<const float> values) {
  return {values.begin(), values.end()};
}

void add_to(std::vector<double>& sum, const Floats& values) {
  for (std::size_t i = 0; i < values.size(); ++i) sum[i] += values[i];
}

std::size_t kept_in(const Bytes& wire) {
  const auto message = SparseReader(wire, "none").read();
  EXPECT_TRUE(message.has_value());
  return message.value_or(SparseMessage{}).state_array.size();
}

// Sends the same gradient `steps` times; returns the sum of the received values.
std::vector<double> sum_received(const CompressorOptions& options,
                                 const Floats& gradient,
                                 int steps) {
  const auto compressor = compressor_of(options, gradient.size());
  std::vector<double> sum(gradient.size());
  for (int step = 0; step < steps; ++step) {
    add_to(sum, received(*compressor, sent(*compressor, gradient, step), gradient.size()));
  }
  return sum;
}

RC_GTEST_PROP(GradientCompressor, SendsOrKeepsEverything, ()) {
  const auto chain = *rc::gen::elementOf(
      std::vector<std::string>(std::begin(kLossyChains), std::end(kLossyChains)));
  const auto count = *rc::gen::inRange<std::size_t>(0, 10'000);
  const auto steps = *rc::gen::inRange(1, 7);
  const auto seed = *rc::gen::inRange(0U, 1000U);
  const bool warm = chain.starts_with("topk") && *rc::gen::arbitrary<bool>();
  const auto compressor =
      compressor_of({.chain = chain, .warmup_steps = warm ? steps / 2 : 0}, count);
  std::vector<double> gradients(count);
  std::vector<double> messages(count);
  float largest = 0;
  for (int step = 0; step < steps; ++step) {
    const Floats gradient = normal_slice(count, seed + static_cast<unsigned>(step));
    for (const float value : gradient) largest = std::max(largest, std::abs(value));
    add_to(gradients, gradient);
    add_to(messages, received(*compressor, sent(*compressor, gradient, step), count));
  }
  add_to(messages, copy_of(compressor->residual()));
  // Two roundings per step, of values at most a few times as large as the accumulated ones.
  const double tolerance = 0x1p-22 * steps * steps * largest;
  for (std::size_t i = 0; i < count; ++i) {
    RC_ASSERT(std::abs(gradients[i] - messages[i]) <= tolerance);
  }
}

// The largest value of the block is 127 codes of int8, so 0.3 of a code is rounded to 0.
TEST(GradientCompressor, BringsSmallValuesInTheirTurnOnlyWithFeedback) {
  Floats gradient(128, 0.3F);
  gradient[5] = 127;
  const auto with = sum_received({.chain = "int8"}, gradient, 100);
  const auto without = sum_received({.chain = "int8", .error_feedback = false}, gradient, 100);
  EXPECT_NEAR(with[0], 30, 1);
  EXPECT_EQ(without[0], 0);
  EXPECT_NEAR(without[5], 12'700, 1e-2);
}

TEST(GradientCompressor, BringsWhatTopkLeavesOutOnlyWithFeedback) {
  Floats gradient(1000, 1.0F);
  for (std::size_t i = 0; i < 100; ++i) gradient[i] = 4;
  const auto with = sum_received({.chain = "topk(0.1)"}, gradient, 100);
  const auto without = sum_received({.chain = "topk(0.1)", .error_feedback = false}, gradient, 100);
  for (std::size_t i = 100; i < 1000; ++i) {
    EXPECT_GT(with[i], 50) << i;
    EXPECT_EQ(without[i], 0) << i;
  }
}

// Straightforward implementation of the algorithm, given only the positions that were sent.
TEST(GradientCompressor, GathersMomentumUntilAValueIsSent) {
  const std::size_t count = 5000;
  const auto compressor = compressor_of({.chain = "topk(0.02)", .momentum = 0.9F}, count);
  Floats velocity(count);
  Floats residual(count);
  for (unsigned step = 0; step < 10; ++step) {
    const Floats gradient = normal_slice(count, step);
    for (std::size_t i = 0; i < count; ++i) {
      velocity[i] = 0.9F * velocity[i] + gradient[i];
      residual[i] += velocity[i];
    }
    const auto message = SparseReader(sent(*compressor, gradient, step), "none").read();
    ASSERT_TRUE(message.has_value());
    ASSERT_GE(message->state_array.size(), 60U);
    for (const auto& [place, value] : message->state_array) {
      ASSERT_EQ(value, residual[place]);
      residual[place] = velocity[place] = 0;
    }
    ASSERT_EQ(copy_of(compressor->residual()), residual);
    ASSERT_EQ(copy_of(compressor->velocity()), velocity);
  }
}

TEST(GradientCompressor, KeepsNearlyTheTargetWhileTheResidualGrows) {
  const std::size_t count = 300'000;
  for (const auto& slice : {normal_slice, heavy_slice}) {
    const auto compressor = compressor_of({.chain = "topk(0.01)"}, count);
    std::size_t all = 0;
    for (unsigned step = 0; step < 60; ++step) {
      const std::size_t kept = kept_in(sent(*compressor, slice(count, step), step));
      EXPECT_GT(kept, 2200U) << step;
      EXPECT_LT(kept, 4300U) << step;
      all += kept;
    }
    EXPECT_NEAR(static_cast<double>(all) / 60, 3000, 300);
  }
}

// For slices as in all-reduces, which are short enough for exact thresholds, whatever the earlier
// gradients were.
TEST(GradientCompressor, KeepsTheTargetOfAShortSlice) {
  const std::size_t count = 65'536;
  const auto compressor = compressor_of({.chain = "topk(0.01)"}, count);
  for (unsigned step = 0; step < 40; ++step) {
    Floats gradient = step % 2 == 0 ? normal_slice(count, step) : heavy_slice(count, step);
    for (float& value : gradient) value *= step % 7 == 3 ? 100.0F : 1.0F;
    EXPECT_EQ(kept_in(sent(*compressor, gradient, step)), 655U) << step;
  }
}

TEST(GradientCompressor, WarmsUpFromDenseToTheTarget) {
  const auto compressor = compressor_of({.chain = "topk(0.01)", .warmup_steps = 9}, 100'000);
  const double densities[] = {0.25,     0.25,     0.25,     0.0625, 0.0625, 0.0625,
                              0.015625, 0.015625, 0.015625, 0.01,   0.01};
  for (std::int64_t step = 0; step < 11; ++step) {
    const double density = densities[step];
    EXPECT_DOUBLE_EQ(compressor->density(step), density);
    const Bytes wire = sent(*compressor, normal_slice(100'000, static_cast<unsigned>(step)), step);
    EXPECT_NEAR(static_cast<double>(kept_in(wire)), 100'000 * density, 50'000 * density);
  }
}

TEST(GradientCompressor, TakesADensityAboveAllWarmUpsAsItIs) {
  const auto compressor = compressor_of({.chain = "topk(0.3)", .warmup_steps = 100}, 1000);
  EXPECT_EQ(compressor->density(0), 0.3);
  EXPECT_EQ(compressor_of({.chain = "int8"}, 10)->density(0), 1);
}

TEST(GradientCompressor, IsReadByTheCodecForReceivers) {
  const CompressorOptions options = {.chain = "topk(0.001)|fp16", .warmup_steps = 10};
  const auto compressor = compressor_of(options, 10'000);
  const Bytes wire = sent(*compressor, normal_slice(10'000));
  const auto codec = make_gradient_codec(options);
  ASSERT_TRUE(codec.ok());
  EXPECT_EQ((*codec)->bytes_max(10'000), compressor->bytes_max());
  Floats sum(10'000);
  ASSERT_TRUE((*codec)->decode_add(wire, sum).ok());
  EXPECT_EQ(sum, received(*compressor, wire, 10'000));
}

TEST(GradientCompressor, ForgetsAllAtAReset) {
  for (const float momentum : {0.0F, 0.9F}) {
    const CompressorOptions options = {.chain = "topk(0.05)", .momentum = momentum};
    const auto compressor = compressor_of(options, 5000);
    const Bytes before = sent(*compressor, normal_slice(5000));
    EXPECT_NE(sent(*compressor, normal_slice(5000)), before);
    compressor->reset();
    EXPECT_EQ(sent(*compressor, normal_slice(5000)), before);
  }
}

class EveryLossyChain : public testing::TestWithParam<const char*> {};

TEST_P(EveryLossyChain, ShowsWhatIsNotFiniteAndForgetsIt) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    const auto compressor = compressor_of({.chain = GetParam()}, 9000);
    Floats gradient = normal_slice(9000);
    gradient[5000] = bad;
    const Floats shown = received(*compressor, sent(*compressor, gradient), 9000);
    EXPECT_FALSE(std::isfinite(shown[5000]));
    const auto finite = [](float value) { return std::isfinite(value); };
    EXPECT_TRUE(std::ranges::all_of(compressor->residual(), finite));
    const Bytes next = sent(*compressor, normal_slice(9000, 2), 1);
    EXPECT_TRUE(std::ranges::all_of(received(*compressor, next, 9000), finite));
  }
}

TEST_P(EveryLossyChain, FitsItsBoundWhateverComes) {
  const auto compressor = compressor_of({.chain = GetParam()}, 9000);
  const Floats slices[] = {normal_slice(9000),     Floats(9000, 1e-38F), Floats(9000, FLT_MAX),
                           Floats(9000, -FLT_MAX), Floats(9000, NAN),    Floats(9000),
                           heavy_slice(9000),      Floats(9000, 1.0F),   Floats(9000, 1e30F)};
  for (const Floats& slice : slices)
    EXPECT_LE(sent(*compressor, slice).size(), compressor->bytes_max());
}

TEST_P(EveryLossyChain, IsTheCodecItselfAtTheFirstStep) {
  const auto compressor = compressor_of({.chain = GetParam()}, 9000);
  const Floats gradient = normal_slice(9000);
  Bytes wire(compressor->bytes_max());
  wire.resize(compressor->codec().encode(gradient, wire));
  EXPECT_EQ(sent(*compressor, gradient), wire);
}

INSTANTIATE_TEST_SUITE_P(Chains, EveryLossyChain, testing::ValuesIn(kLossyChains));

TEST(GradientCompressor, KeepsNothingWhereNothingIsLost) {
  for (const char* chain : {"none", "zstd(1)"}) {
    const auto compressor = compressor_of({.chain = chain}, 100);
    const Floats gradient = normal_slice(100);
    EXPECT_EQ(received(*compressor, sent(*compressor, gradient), 100), gradient);
    EXPECT_TRUE(compressor->residual().empty());
  }
  EXPECT_TRUE(compressor_of({.chain = "int8", .error_feedback = false}, 100)->residual().empty());
}

TEST(GradientCompressor, RefusesWhatDoesNotGoTogether) {
  const auto refused = [](const CompressorOptions& options) {
    const auto compressor = GradientCompressor::make(options, 10);
    if (compressor.ok()) return std::string("accepted");
    EXPECT_EQ(compressor.error().code, ErrorCode::kConfig);
    EXPECT_FALSE(make_gradient_codec(options).ok());
    return compressor.error().cause;
  };
  EXPECT_THAT(refused({.chain = "half"}), HasSubstr("unknown"));
  EXPECT_THAT(refused({.chain = "int8", .momentum = 0.9F}), HasSubstr("topk"));
  EXPECT_THAT(refused({.chain = "lowrank(4)"}), HasSubstr("removed"));
  EXPECT_THAT(refused({.chain = "topk(0.1)", .error_feedback = false, .momentum = 0.9F}),
              HasSubstr("error feedback"));
  EXPECT_THAT(refused({.chain = "topk(0.1)", .momentum = 1}), HasSubstr("below 1"));
  EXPECT_THAT(refused({.chain = "topk(0.1)", .momentum = NAN}), HasSubstr("below 1"));
  EXPECT_THAT(refused({.chain = "int8", .warmup_steps = 5}), HasSubstr("density"));
  EXPECT_THAT(refused({.chain = "topk(0.1)", .warmup_steps = -1}), HasSubstr("less than 0"));
}

}  // namespace
}  // namespace motley
