// Attention by fused operations, if LibTorch and the tested device have them, compared with the
// explicit implementation. On the far device they have the arguments and results of CUDA's.
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include <torch/version.h>

#include "bf16_sums.h"
#include "device_chain.h"
#include "models/layers/device/attention_core.h"

namespace motley::testing {
namespace {

constexpr MicroContext kMicro{.seed = 11, .step = 3, .micro = 2};

ModelConfig model(std::int64_t width, std::int64_t heads, double dropout = 0) {
  ModelConfig config = small_gpt2(dropout);
  config.width = width;
  config.heads = heads;
  return config;
}

LayerContext context_of(const ModelConfig& config) {
  LayerContext context;
  context.model = config;
  context.index = 1;
  context.device = tested_device().torch();
  return context;
}

bool has_fused_operations() {
  return !tested_device().is_host() &&
         (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 6));
}

AttentionPath path_of(const ModelConfig& config, at::ScalarType type) {
  return make_attention_core(context_of(config), type)->path();
}

TEST(DeviceFusedAttention, IsTakenWhereTheDeviceHasIt) {
  const c10::InferenceMode guard;
  const bool fused = has_fused_operations();
  const auto expected = [&](AttentionPath path) { return fused ? path : AttentionPath::kExplicit; };
  const ModelConfig config = model(32, 4);
  EXPECT_EQ(path_of(config, at::kFloat), expected(AttentionPath::kEfficient));
  EXPECT_EQ(path_of(config, at::kHalf), expected(AttentionPath::kFlash));
  EXPECT_EQ(path_of(config, at::kBFloat16), expected(AttentionPath::kFlash));
}

TEST(DeviceFusedAttention, IsLeftForDropoutAndOtherWidths) {
  const c10::InferenceMode guard;
  EXPECT_EQ(path_of(model(32, 4, 0.1), at::kFloat), AttentionPath::kExplicit);
  EXPECT_EQ(path_of(model(24, 2), at::kBFloat16), AttentionPath::kExplicit);
  EXPECT_EQ(path_of(model(272, 2), at::kFloat), AttentionPath::kExplicit);
}

struct AttentionCase {
  at::ScalarType type;
  std::int64_t samples;
  std::int64_t tokens;
  std::int64_t heads;
  std::int64_t head_width;
  double tolerance;  // relative to the largest value of a tensor; docs/numerics.md
};

void PrintTo(const AttentionCase& value, std::ostream* out) {
  *out << value.samples << " samples, " << value.tokens << " tokens, " << value.heads
       << " heads of " << value.head_width;
}

class DeviceAttentionPaths : public ::testing::TestWithParam<AttentionCase> {};

constexpr double kFp32 = 1e-5;
constexpr double kFp16 = 0x1p-9;  // four roundings
constexpr double kBf16 = 0x1p-6;

INSTANTIATE_TEST_SUITE_P(Shapes,
                         DeviceAttentionPaths,
                         ::testing::Values(AttentionCase{at::kFloat, 1, 1, 1, 8, kFp32},
                                           AttentionCase{at::kFloat, 3, 19, 4, 8, kFp32},
                                           AttentionCase{at::kFloat, 2, 64, 2, 64, kFp32},
                                           AttentionCase{at::kFloat, 2, 600, 2, 16, kFp32},
                                           AttentionCase{at::kHalf, 3, 19, 4, 8, kFp16},
                                           AttentionCase{at::kHalf, 2, 300, 2, 128, kFp16},
                                           AttentionCase{at::kBFloat16, 3, 19, 4, 8, kBf16},
                                           AttentionCase{at::kBFloat16, 2, 300, 2, 64, kBf16}));

struct AttentionResults {
  at::Tensor outputs;
  at::Tensor grad_qkv;
};

void expect_near(const at::Tensor& actual, const at::Tensor& expected, double tolerance) {
  const double distance = (actual.cpu().to(at::kFloat) - expected.cpu()).abs().max().item<float>();
  EXPECT_LE(distance, tolerance * expected.cpu().abs().max().item<float>());
}

// In the dtype, and in fp32 from the same values with products of whole matrices.
TEST_P(DeviceAttentionPaths, ComputeTheSame) {
  const c10::InferenceMode guard;
  const AttentionCase& shape = GetParam();
  const ModelConfig config = model(shape.heads * shape.head_width, shape.heads);
  const auto core = make_attention_core(context_of(config), shape.type);
  if (shape.type == at::kHalf && core->path() == AttentionPath::kExplicit &&
      TORCH_VERSION_MAJOR < 2) {
    GTEST_SKIP() << "this LibTorch has no products of fp16 on the processor";
  }
  if (shape.type == at::kBFloat16 && !bf16_sums_are_wide()) {
    GTEST_SKIP() << "LibTorch adds up products of bf16 in bf16 on this processor";
  }
  const auto reference = make_explicit_attention(context_of(config));
  const std::int64_t rows = shape.samples * shape.tokens;
  const auto input = [&](std::int64_t width, std::uint64_t key) {
    return some_floats({rows, width}, key).mul_(2).to(tested_device().torch()).to(shape.type);
  };
  const auto run = [&](AttentionCore& with, const at::Tensor& qkv, const at::Tensor& grad) {
    SavedTensors kept;
    const at::Tensor outputs = with.forward(qkv, shape.tokens, kMicro, kept);
    EXPECT_TRUE(outputs.is_contiguous());
    const MicroContext evaluate{.training = false};
    SavedTensors nothing;
    const at::Tensor again = with.forward(qkv, shape.tokens, evaluate, nothing);
    EXPECT_TRUE(again.cpu().equal(outputs.cpu()));
    EXPECT_TRUE(nothing.empty());
    return AttentionResults{outputs, with.backward(grad, qkv, outputs, shape.tokens, kMicro, kept)};
  };
  const at::Tensor qkv = input(3 * config.width, 1);
  const at::Tensor grad = input(config.width, 2);
  const AttentionResults results = run(*core, qkv, grad);
  const AttentionResults expected = run(*reference, qkv.to(at::kFloat), grad.to(at::kFloat));
  EXPECT_EQ(results.outputs.scalar_type(), shape.type);
  EXPECT_EQ(results.grad_qkv.scalar_type(), shape.type);
  ASSERT_EQ(results.outputs.sizes(), expected.outputs.sizes());
  ASSERT_EQ(results.grad_qkv.sizes(), expected.grad_qkv.sizes());
  expect_near(results.outputs, expected.outputs, shape.tolerance);
  expect_near(results.grad_qkv, expected.grad_qkv, shape.tolerance);
}

}  // namespace
}  // namespace motley::testing
