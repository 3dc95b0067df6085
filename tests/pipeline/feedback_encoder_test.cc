#include "pipeline/collectives/feedback_encoder.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace motley {
namespace {

constexpr std::size_t kCount = 1024;
constexpr ValueRange kFirstHalf{0, kCount / 2};
constexpr ValueRange kSecondHalf{kCount / 2, kCount / 2};

// A gradient of the step, with values that int4 cannot represent.
std::vector<float> gradient(std::int64_t step) {
  std::vector<float> values_N(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    values_N[i] = std::sin(static_cast<float>(i * 7 + static_cast<std::size_t>(step) * 31));
  }
  return values_N;
}

// Encodes both halves of `steps` gradients; returns the sum of the decoded values.
std::vector<double> sent_in(FeedbackEncoder& encoder, int steps) {
  std::vector<double> sum(kCount);
  std::vector<std::byte> wire_B(encoder.bytes_max(kCount / 2));
  for (std::int64_t step = 1; step <= steps; ++step) {
    std::vector<float> values_N = gradient(step);
    for (const ValueRange& half : {kFirstHalf, kSecondHalf}) {
      const WireSlice slice{ReducePhase::kCrossReduceScatter, half, step};
      const auto own_N = std::span(values_N).subspan(half.first, half.count);
      const std::size_t bytes = encoder.encode(slice, own_N, wire_B);
      std::vector<float> came_N(half.count);
      EXPECT_TRUE(encoder.decode(std::span(wire_B).first(bytes), came_N).ok());
      for (std::size_t i = 0; i < came_N.size(); ++i) {
        EXPECT_EQ(own_N[i], came_N[i]) << "the sender goes on with other values";
        sum[half.first + i] += came_N[i];
      }
    }
  }
  return sum;
}

// The largest difference between sent values plus residual and the gradients.
double missing_after(FeedbackEncoder& encoder, int steps) {
  std::vector<double> sum = sent_in(encoder, steps);
  std::vector<float> left_N(kCount);
  encoder.add_feedback(FeedbackKind::kResidual, left_N);
  double largest = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    double expected = 0;
    for (int step = 1; step <= steps; ++step) expected += gradient(step)[i];
    largest = std::max(largest, std::abs(expected - sum[i] - left_N[i]));
  }
  return largest;
}

std::unique_ptr<FeedbackEncoder> encoder_of(const CompressorOptions& options) {
  auto encoder = FeedbackEncoder::make(options);
  EXPECT_TRUE(encoder.ok());
  return std::move(encoder).value();
}

TEST(FeedbackEncoder, LosesNothingOverTheSteps) {
  for (const char* chain : {"int4", "topk(0.02)|fp16", "fp16|zstd(1)"}) {
    EXPECT_LT(missing_after(*encoder_of({.chain = chain}), 20), 1e-4) << chain;
  }
}

TEST(FeedbackEncoder, LosesWhatItLeavesOutWithoutFeedback) {
  for (const char* chain : {"int4", "topk(0.02)|fp16"}) {
    EXPECT_GT(missing_after(*encoder_of({.chain = chain, .error_feedback = false}), 20), 0.1)
        << chain;
  }
}

TEST(FeedbackEncoder, ForgetsWhatItLeftOut) {
  const auto encoder = encoder_of({.chain = "int4"});
  const std::vector<double> first = sent_in(*encoder, 3);
  EXPECT_NE(sent_in(*encoder, 3), first);
  encoder->end_step(StepEffect::kUpdated);
  EXPECT_NE(sent_in(*encoder, 3), first);
  encoder->end_step(StepEffect::kSkipped);
  EXPECT_EQ(sent_in(*encoder, 3), first);
}

// Encodes all messages of a step without targets, whose contents come from the residual.
void send_zeros(FeedbackEncoder& encoder, std::int64_t step) {
  std::vector<std::byte> wire_B(encoder.bytes_max(kCount / 2));
  for (const ValueRange& half : {kFirstHalf, kSecondHalf}) {
    std::vector<float> zeros_N(half.count);
    encoder.begin_reduction({ReducePhase::kCrossAllGather, half, step}, zeros_N);
    // The other machines' contributions.
    for (float& value : zeros_N) value += 0.25F;
    encoder.encode({ReducePhase::kCrossAllGather, half, step}, zeros_N, wire_B);
    std::ranges::fill(zeros_N, -0.0F);
    encoder.encode({ReducePhase::kCrossReduceScatter, half, step}, zeros_N, wire_B);
  }
}

std::vector<float> kept_of(FeedbackEncoder& encoder, FeedbackKind what) {
  std::vector<float> selected_N(kCount);
  encoder.add_feedback(what, selected_N);
  return selected_N;
}

// The messages of such a step contain residuals, but are not used.
TEST(FeedbackEncoder, HasWhatItHadAfterAStepWithoutTargets) {
  for (const CompressorOptions& options :
       {CompressorOptions{.chain = "int4"}, {.chain = "topk(0.02)|fp16", .momentum = 0.9F}}) {
    const auto encoder = encoder_of(options);
    const auto unbroken = encoder_of(options);
    sent_in(*encoder, 3);
    sent_in(*unbroken, 3);
    encoder->end_step(StepEffect::kUpdated);
    unbroken->end_step(StepEffect::kUpdated);
    send_zeros(*encoder, 4);
    EXPECT_NE(kept_of(*encoder, FeedbackKind::kResidual),
              kept_of(*unbroken, FeedbackKind::kResidual));
    encoder->end_step(StepEffect::kWithoutTargets);
    for (const FeedbackKind what : {FeedbackKind::kResidual, FeedbackKind::kVelocity}) {
      EXPECT_EQ(kept_of(*encoder, what), kept_of(*unbroken, what)) << options.chain;
    }
    EXPECT_EQ(sent_in(*encoder, 3), sent_in(*unbroken, 3)) << options.chain;
  }
}

// A replica without targets, while others have some: the step counts.
TEST(FeedbackEncoder, GoesOnAfterAStepOfZerosThatCounts) {
  const auto encoder = encoder_of({.chain = "int4"});
  sent_in(*encoder, 3);
  encoder->end_step(StepEffect::kUpdated);
  send_zeros(*encoder, 4);
  const std::vector<float> kept = kept_of(*encoder, FeedbackKind::kResidual);
  encoder->end_step(StepEffect::kUpdated);
  EXPECT_EQ(kept_of(*encoder, FeedbackKind::kResidual), kept);
}

TEST(FeedbackEncoder, RefusesWhatIsNotAChain) {
  EXPECT_EQ(FeedbackEncoder::make({.chain = "magic"}).error().code, ErrorCode::kConfig);
}

}  // namespace
}  // namespace motley
