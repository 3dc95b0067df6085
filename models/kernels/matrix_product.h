// Products of fp32 matrices with weights: what takes the time of forward and of input gradients.
//
// a is [R, K], fp32, contiguous; b is [K, C], contiguous or the transpose of what is (`.t()`),
// without a copy. Where b is bf16, a is rounded to it, and the sums are fp32 all the same.
// The bits depend on the sizes, the processor and the number of threads, on nothing else.
// By oneDNN where it is built in and fast, as it is on the few rows of a small micro-batch as on
// many, else by ATen's BLAS (decision 0018).
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

namespace motley {

// a b, newly allocated.
[[nodiscard]] at::Tensor product(const at::Tensor& a, const at::Tensor& b);

// out = a b; out is contiguous.
void product_into(at::Tensor& out, const at::Tensor& a, const at::Tensor& b);

// sum += a b; sum is contiguous.
void add_product(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b);

// sum += a^T b of fp32 matrices, all contiguous, which are rounded to `numbers` first: the gradient
// of weights whose products are in these.
void add_gradient_product(at::Tensor& sum,
                          const at::Tensor& a,
                          const at::Tensor& b,
                          at::ScalarType numbers);

}  // namespace motley
