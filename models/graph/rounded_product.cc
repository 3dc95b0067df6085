#include "models/graph/rounded_product.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include <ATen/ATen.h>

namespace motley {
namespace {

struct Product {
  std::string_view name;
  // How many of its first arguments each of its results is linear in; 0 where a bias is added.
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

// A power of two on x's device that brings the largest of |x| to between 1/2 and 1; 1 where that
// is 0 or not finite.
at::Tensor power_to_one(const at::Tensor& x) {
  const at::Tensor largest = x.abs().amax();
  const at::Tensor exponent = std::get<1>(at::frexp(largest));
  const at::Tensor power = at::exp2(exponent.neg().to(at::kFloat));
  return at::where(largest.isfinite(), power, at::ones_like(power));
}

}  // namespace

bool is_product(std::string_view operation) {
  return find_product(operation) != nullptr;
}

void run_rounded(const c10::OperatorHandle& operation,
                 torch::jit::Stack& stack,
                 at::ScalarType numbers) {
  const std::size_t linear_in =
      numbers == at::kHalf ? find_product(operation.operator_name().name)->linear_in : 0;
  at::Tensor power;  // that the results have too much
  for (std::size_t i = 0; i < stack.size(); ++i) {
    if (!is_fp32(stack[i])) continue;
    at::Tensor x = std::move(stack[i]).toTensor();
    if (i < linear_in) {
      const at::Tensor own = power_to_one(x);
      x = x * own;
      power = power.defined() ? power * own : own;
    }
    stack[i] = x.to(numbers);
  }
  operation.callBoxed(stack);
  for (c10::IValue& value : stack) {
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    at::Tensor wide = value.toTensor().to(at::kFloat);
    value = power.defined() ? wide.div_(power) : wide;
  }
}

}  // namespace motley
