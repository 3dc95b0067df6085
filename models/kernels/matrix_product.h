// Products of fp32 matrices with weights, which dominate forward and input gradients.
//
// a is [R, K], fp32, contiguous; b is [K, C], contiguous or the transpose (`.t()`) of a contiguous
// matrix, without a copy. If b is bf16, a is rounded to it; sums are fp32 nevertheless. The bits
// depend only on the sizes, the processor and the number of threads. Uses oneDNN if it is built in
// and fast, which includes the few rows of a small micro-batch, else ATen's BLAS (decision 0018).
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

// sum += a^T b of fp32 matrices, all contiguous, which are first rounded to `dtype`: the weight
// gradient of products in that dtype.
void add_gradient_product(at::Tensor& sum,
                          const at::Tensor& a,
                          const at::Tensor& b,
                          at::ScalarType dtype);

}  // namespace motley
