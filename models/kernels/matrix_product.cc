#include "models/kernels/matrix_product.h"

#include <ATen/ATen.h>

#ifdef MOTLEY_WITH_ONEDNN
#include "models/kernels/onednn_product.h"
#endif

namespace motley {
namespace {

// out = a b, or out += a b, for factors in bf16. out is fp32. With oneDNN sums are fp32 too;
// without it LibTorch rounds them once more.
void rounded_product(at::Tensor& out, const at::Tensor& a, const at::Tensor& b, bool adds) {
#ifdef MOTLEY_WITH_ONEDNN
  onednn_multiply(out, a, b, adds);
#else
  if (adds) {
    out.add_(at::mm(a, b));
  } else {
    out.copy_(at::mm(a, b));
  }
#endif
}

bool is_rounded(const at::Tensor& b) {
  return b.scalar_type() != at::kFloat;
}

}  // namespace

at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor out = at::empty({a.size(0), b.size(1)}, a.options());
  product_into(out, a, b);
  return out;
}

void product_into(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
  if (is_rounded(b)) return rounded_product(out, a.to(b.scalar_type()), b, /*adds=*/false);
#ifdef MOTLEY_WITH_ONEDNN
  if (onednn_is_fast(b)) return onednn_multiply(out, a, b, /*adds=*/false);
#endif
  at::mm_out(out, a, b);
}

void add_product(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
  if (is_rounded(b)) return rounded_product(sum, a.to(b.scalar_type()), b, /*adds=*/true);
#ifdef MOTLEY_WITH_ONEDNN
  if (onednn_is_fast(b)) return onednn_multiply(sum, a, b, /*adds=*/true);
#endif
  sum.addmm_(a, b);
}

void add_gradient_product(at::Tensor& sum,
                          const at::Tensor& a,
                          const at::Tensor& b,
                          at::ScalarType dtype) {
  if (dtype == at::kFloat) {
    sum.addmm_(a.t(), b);
  } else {
    rounded_product(sum, a.to(dtype).t(), b.to(dtype), /*adds=*/true);
  }
}

}  // namespace motley
