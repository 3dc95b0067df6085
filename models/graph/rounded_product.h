// Products of a package's graph in bf16 or fp16: what goes in is rounded, what comes out is fp32
// again, so that the other operations of the graph, and what is kept between them, stay as they
// were exported.
#pragma once

#include <string_view>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <c10/core/ScalarType.h>

namespace motley {

// Whether it is a product of matrices or a convolution.
[[nodiscard]] bool is_product(std::string_view operation);

// Calls it on the stack, where its fp32 tensors are rounded to `numbers`. fp16 has no room for
// small gradients, and nothing in a graph tells gradients from values: the factors of products
// without a bias, which are those of every backward, are brought to a size of 1 by a power of two
// first, each by its own. REQUIRES: is_product(); the stack holds its arguments.
void run_rounded(const c10::OperatorHandle& operation,
                 torch::jit::Stack& stack,
                 at::ScalarType numbers);

}  // namespace motley
