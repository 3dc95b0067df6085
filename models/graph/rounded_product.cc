#include "models/graph/rounded_product.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

namespace motley {
namespace {

struct Product {
  std::string_view name;
  // How many of its first arguments each result is linear in; 0 if a bias is added.
  std::size_t linear_in = 0;
};

constexpr std::array<Product, 7> kProducts = {{
    {"aten::_convolution"},
    {"aten::addmm"},
    {"aten::baddbmm"},
    {"aten::bmm", 2},
    {"aten::convolution"},
    {"aten::convolution_backward", 1},
    {"aten::mm", 2},
}};

const Product* find_product(std::string_view operation) {
  const auto* const found = std::ranges::find(kProducts, operation, &Product::name);
  return found == kProducts.end() ? nullptr : found;
}

bool is_fp32(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() &&
         value.toTensor().scalar_type() == at::kFloat;
}

// On the processor, LibTorch 1.13 passes every bf16 convolution to oneDNN's forward convolution,
// and so refuses transposed ones.
bool needs_wide_factors(const c10::OperatorHandle& operation, const torch::jit::Stack& stack) {
  const auto transposed = operation.schema().argumentIndexWithName("transposed");
  return transposed && stack[static_cast<std::size_t>(*transposed)].toBool() &&
         stack.front().toTensor().is_cpu();
}

// A power of two on x's device that scales the largest of |x| to between 1/2 and 1, or near it if
// that is denormal; 1 if it is not finite, or x is empty. Uses the bits of fp32, for which all
// devices have operations.
at::Tensor power_to_one(const at::Tensor& x) {
  constexpr int kFractionBits = 23;
  constexpr std::int64_t kNotFinite = 0xFF;              // exponent bits
  constexpr std::int64_t kTwiceTheBias = 253;            // less 1, since the target is 1/2
  if (x.numel() == 0) return at::ones({}, x.options());  // LibTorch 2: amax needs an element
  const at::Tensor exponent = x.abs().amax().view(at::kInt).bitwise_right_shift(kFractionBits);
  const at::Tensor power =
      exponent.neg().add_(kTwiceTheBias).clamp_min_(1).bitwise_left_shift(kFractionBits);
  return at::where(exponent.eq(kNotFinite), at::ones({}, x.options()), power.view(at::kFloat));
}

}  // namespace

bool is_product(std::string_view operation) {
  return find_product(operation) != nullptr;
}

void run_rounded(const c10::OperatorHandle& operation,
                 torch::jit::Stack& stack,
                 at::ScalarType dtype) {
  const std::size_t linear_in =
      dtype == at::kHalf ? find_product(operation.operator_name().name)->linear_in : 0;
  const bool is_widened = needs_wide_factors(operation, stack);
  std::vector<at::Tensor> powers;  // scale factors to remove from the results
  for (std::size_t i = 0; i < stack.size(); ++i) {
    if (!is_fp32(stack[i])) continue;
    at::Tensor x = std::move(stack[i]).toTensor();
    if (i < linear_in) {
      powers.push_back(power_to_one(x));
      x = x * powers.back();
    }
    stack[i] = is_widened ? x.to(dtype).to(at::kFloat) : x.to(dtype);
  }
  operation.callBoxed(stack);
  for (c10::IValue& value : stack) {
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    at::Tensor wide = value.toTensor().to(dtype).to(at::kFloat);
    for (const at::Tensor& power : powers) wide.div_(power);
    value = wide;
  }
}

}  // namespace motley
