// Products of a package's graph in bf16 or fp16: arguments are rounded and results are fp32 again.
// The graph's other operations, and what is saved between them, remain as exported.
#pragma once

#include <string_view>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/ScalarType.h>

namespace motley {

// Whether it is a matrix product or a convolution.
[[nodiscard]] bool is_product(std::string_view operation);

// Calls it on the stack, with its fp32 tensors rounded to `dtype`. Small gradients underflow in
// fp16, and a graph does not distinguish gradients from values. Therefore the factors of products
// without a bias, which are those of every backward, are first scaled to a magnitude of 1, each by
// its own power of two. REQUIRES: is_product(); the stack holds its arguments.
void run_rounded(const c10::OperatorHandle& operation,
                 torch::jit::Stack& stack,
                 at::ScalarType dtype);

}  // namespace motley
