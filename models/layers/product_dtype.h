// ProductDtype: the dtype of a layer's matrix products (train.precision; decision 0028).
//
// Parameters, gradients, moments and the values at a layer's boundary are always fp32. A layer
// rounds the factors of a product to bf16 or fp16 and adds the result in fp32. Values that it saves
// between two products stay rounded, which halves their memory.
//
// Small gradients underflow in fp16. A layer multiplies the gradients that enter its products by a
// scale and divides its results, so that nothing outside a layer is scaled: codecs, all-reduces
// over replicas and norms use unscaled gradients, whichever rank computes in fp16.
//
// Copies share the scale. Used by the thread of the layers.
#pragma once

#include <memory>

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

namespace motley {

class ProductDtype {
 public:
  ProductDtype() : ProductDtype(at::kFloat) {}

  // REQUIRES: type is kFloat, kBFloat16 or kHalf.
  explicit ProductDtype(at::ScalarType type);

  [[nodiscard]] at::ScalarType type() const { return type_; }

  [[nodiscard]] bool are_fp32() const { return type_ == at::kFloat; }

  // Sets the scale of gradients from now on, for all copies; used for fp16 alone. REQUIRES: a power
  // of two, so that no gradient loses a bit.
  void set_gradient_scale(double scale);

  // 1 except for fp16.
  [[nodiscard]] double gradient_scale() const { return *scale_; }

  // fp32 values as factors of a product; for fp32 the values themselves.
  [[nodiscard]] at::Tensor rounded(const at::Tensor& values) const;
  // fp32 gradients as factors of a product.
  [[nodiscard]] at::Tensor scaled(const at::Tensor& gradients) const;
  // Results of products of values, as fp32.
  [[nodiscard]] at::Tensor widened(const at::Tensor& values) const;
  // Results of products of scaled gradients, as unscaled fp32.
  [[nodiscard]] at::Tensor unscaled(const at::Tensor& gradients) const;
  // sum += a b, where one of the factors is scaled. sum is fp32.
  void add_product(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) const;
  // sum += terms, which are scaled. Both are fp32.
  void add_scaled(const at::Tensor& sum, const at::Tensor& terms) const;

 private:
  at::ScalarType type_;
  std::shared_ptr<double> scale_;
};

}  // namespace motley
