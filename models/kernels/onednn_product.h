// Matrix products by oneDNN. Private to matrix_product.cc, which has the contract.
#pragma once

#include <ATen/core/Tensor.h>

namespace motley {

// Whether oneDNN is faster than a BLAS with this right side. If it is a transpose or its rows are a
// multiple of 4 KiB apart, oneDNN copies its blocks into the order that its kernel reads. Otherwise
// it reads them in place, which is slow for long rows: up to 2.5 times (decision 0018).
[[nodiscard]] bool onednn_is_fast(const at::Tensor& b);

// out = a b, or out += a b. a and b are both fp32 or both bf16, each contiguous or the transpose of
// a contiguous matrix; out is fp32 and contiguous.
void onednn_multiply(at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool adds);

}  // namespace motley
