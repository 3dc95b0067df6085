#include "models/kernels/matrix_product.h"

#include <ATen/ATen.h>

#ifdef MOTLEY_WITH_ONEDNN
#include "models/kernels/onednn_product.h"
#endif

namespace motley {

at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor out = at::empty({a.size(0), b.size(1)}, a.options());
  product_into(out, a, b);
  return out;
}

void product_into(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) {
#ifdef MOTLEY_WITH_ONEDNN
  if (onednn_is_fast(b)) return onednn_multiply(out, a, b, /*adds=*/false);
#endif
  at::mm_out(out, a, b);
}

void add_product(at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
#ifdef MOTLEY_WITH_ONEDNN
  if (onednn_is_fast(b)) return onednn_multiply(sum, a, b, /*adds=*/true);
#endif
  sum.addmm_(a, b);
}

}  // namespace motley
