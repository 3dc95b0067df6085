// Products of packages' graphs in bf16 and fp16: single operations compared with fp32, and whole
// models.
#include "models/graph/rounded_product.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include "base/philox.h"
#include "bf16_sums.h"
#include "package_chain.h"
#include "tests/support/tested_device.h"

namespace motley::testing {
namespace {

c10::Device device() {
  return tested_device().torch();
}

bool lacks_fp16() {
  return tested_device().is_host();
}

at::Tensor floats(at::IntArrayRef sizes, std::uint64_t key, double size) {
  at::Tensor x = at::empty(sizes, at::kFloat);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    x.data_ptr<float>()[i] =
        2 * to_unit_float(philox4x32(key, 1, static_cast<std::uint64_t>(i))[0]) - 1;
  }
  return x.mul_(size).to(device());
}

at::Tensor called(const char* name, torch::jit::Stack stack, at::ScalarType numbers) {
  const auto operation = c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
  run_rounded(operation, stack, numbers);
  return stack.front().toTensor().cpu();
}

double distance(const at::Tensor& value, const at::Tensor& exact) {
  return (value - exact).abs().max().item<double>() / exact.abs().max().item<double>();
}

TEST(RoundedProduct, KnowsProducts) {
  EXPECT_TRUE(is_product("aten::mm"));
  EXPECT_TRUE(is_product("aten::convolution_backward"));
  EXPECT_FALSE(is_product("aten::mul.Tensor"));
  EXPECT_FALSE(is_product("aten::mm.out"));
}

TEST(RoundedProduct, RoundsWhatGoesIn) {
  if (!bf16_sums_are_wide()) {
    GTEST_SKIP() << "LibTorch adds up products of bf16 in bf16 on this processor";
  }
  const c10::InferenceMode guard;
  const at::Tensor a = floats({17, 33}, 1, 1);
  const at::Tensor b = floats({33, 9}, 2, 1);
  const at::Tensor y = called("aten::mm", {a, b}, at::kBFloat16);
  EXPECT_EQ(y.scalar_type(), at::kFloat);
  const at::Tensor rounded =
      at::mm(a.cpu().to(at::kBFloat16).to(at::kDouble), b.cpu().to(at::kBFloat16).to(at::kDouble));
  EXPECT_LE(distance(y, rounded), 0x1p-7);  // the result is rounded to bf16 once
  EXPECT_GT(distance(y, at::mm(a.cpu(), b.cpu())), 0);
}

TEST(RoundedProduct, CanBeATransposedConvolution) {
  if (!bf16_sums_are_wide()) {
    GTEST_SKIP() << "LibTorch adds up products of bf16 in bf16 on this processor";
  }
  const c10::InferenceMode guard;
  const at::Tensor x = floats({2, 4, 5, 6}, 1, 1);
  const at::Tensor w = floats({4, 3, 3, 3}, 2, 1);
  const std::vector<std::int64_t> twos = {2, 2};
  const std::vector<std::int64_t> ones = {1, 1};
  const auto rounded = [](const at::Tensor& t) { return t.cpu().to(at::kBFloat16).to(at::kFloat); };
  const at::Tensor y =
      called("aten::convolution",
             {x, w, c10::IValue(), twos, ones, ones, /*transposed=*/true, ones, std::int64_t{1}},
             at::kBFloat16);
  EXPECT_LE(distance(y, at::conv_transpose2d(rounded(x), rounded(w), {}, 2, 1, 1)), 0x1p-7);
}

// Magnitudes far below the smallest and far above the largest fp16 number.
TEST(RoundedProduct, OfAnySizeFitFp16) {
  if (lacks_fp16()) GTEST_SKIP() << "LibTorch for processors has fp16 in some versions only";
  const c10::InferenceMode guard;
  for (const double size : {1e-40, 1e-12, 1e-4, 1.0, 1e6, 1e30}) {
    const at::Tensor a = floats({17, 33}, 1, size);
    const at::Tensor b = floats({33, 9}, 2, size < 1e-30 ? 1 : 1 / std::sqrt(size));
    EXPECT_LE(distance(called("aten::mm", {a, b}, at::kHalf), at::mm(a.cpu(), b.cpu())), 0.01)
        << size;
  }
}

TEST(RoundedProduct, OfNothingAndOfInfinityStayThat) {
  if (lacks_fp16()) GTEST_SKIP() << "LibTorch for processors has fp16 in some versions only";
  const c10::InferenceMode guard;
  const at::Tensor a = floats({4, 3}, 1, 0);
  const at::Tensor b = floats({3, 2}, 2, 1);
  EXPECT_EQ(called("aten::mm", {a, b}, at::kHalf).abs().max().item<float>(), 0);
  const at::Tensor infinite = floats({4, 3}, 1, 1).mul_(INFINITY);
  EXPECT_FALSE(called("aten::mm", {infinite, b}, at::kHalf).isfinite().any().item<bool>());
}

class RoundedPackage : public ::testing::TestWithParam<std::string> {};

TEST_P(RoundedPackage, StaysNearFp32) {
  const c10::InferenceMode guard;
  const std::string path = std::string(MOTLEY_PACKAGES_DIR) + "/" + GetParam();
  const auto package = must(read_package(path + ".motley"));
  const auto reference = must(SafetensorsFile::open(path + ".reference.safetensors"));
  const at::Tensor input = read_tensor(reference, "input");
  const at::Tensor targets = read_tensor(reference, "target");
  const MicroContext micro{.seed = 3, .step = 5, .micro = 2};
  PackageChain exact(package, device());
  const PackageStep expected = exact.step(input, targets, micro);
  double largest = 0;
  for (const at::Tensor& gradient : expected.gradients) {
    largest = std::max(largest, gradient.abs().max().item<double>());
  }
  // If rounding changes which value a max pooling selects, a gradient goes to another element.
  const bool pools = GetParam() == "cnn";
  for (const auto& [type, tolerance] :
       {std::pair(at::kBFloat16, pools ? 0.2 : 0.05), std::pair(at::kHalf, pools ? 0.025 : 0.01)}) {
    if (type == at::kHalf && lacks_fp16()) continue;
    PackageChain rounded(package, device(), type);
    const PackageStep step = rounded.step(input, targets, micro);
    EXPECT_NE(step.loss, expected.loss);
    EXPECT_NEAR(step.loss, expected.loss, tolerance * std::abs(expected.loss));
    EXPECT_EQ(step.count, expected.count);
    for (std::size_t i = 0; i < step.gradients.size(); ++i) {
      const double off = (step.gradients[i] - expected.gradients[i]).abs().max().item<double>();
      EXPECT_LE(off, tolerance * largest) << exact.names()[i] << " in " << type;
    }
    EXPECT_TRUE(step.same_bits(rounded.step(input, targets, micro, PackageChain::Way::kSplit)));
  }
}

INSTANTIATE_TEST_SUITE_P(All, RoundedPackage, all_packages(), package_test_name);

}  // namespace
}  // namespace motley::testing
