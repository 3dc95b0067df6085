#include "models/layers/product_dtype.h"

#include <cmath>

#include <ATen/ATen.h>

#include "base/check.h"

namespace motley {

ProductDtype::ProductDtype(at::ScalarType type)
    : type_(type), scale_(std::make_shared<double>(1.0)) {
  MOTLEY_CHECK(type == at::kFloat || type == at::kBFloat16 || type == at::kHalf,
               "products are not computed in {}", c10::toString(type));
}

void ProductDtype::set_gradient_scale(double scale) {
  int exponent = 0;
  MOTLEY_CHECK(scale > 0 && std::frexp(scale, &exponent) == 0.5, "{} is not a power of two", scale);
  *scale_ = type_ == at::kHalf ? scale : 1.0;
}

at::Tensor ProductDtype::rounded(const at::Tensor& values) const {
  return values.to(type_);
}

at::Tensor ProductDtype::scaled(const at::Tensor& gradients) const {
  if (*scale_ == 1.0) return gradients.to(type_);
  return gradients.mul(*scale_).to(type_);
}

at::Tensor ProductDtype::widened(const at::Tensor& values) const {
  return values.to(at::kFloat);
}

at::Tensor ProductDtype::unscaled(const at::Tensor& gradients) const {
  const at::Tensor wide = gradients.to(at::kFloat);
  return *scale_ == 1.0 ? wide : wide.mul(1.0 / *scale_);
}

void ProductDtype::add_product(const at::Tensor& sum,
                               const at::Tensor& a,
                               const at::Tensor& b) const {
  if (are_fp32()) {
    sum.addmm_(a, b);
  } else {
    sum.add_(at::mm(a, b), 1.0 / *scale_);
  }
}

void ProductDtype::add_scaled(const at::Tensor& sum, const at::Tensor& terms) const {
  sum.add_(terms, 1.0 / *scale_);
}

}  // namespace motley
