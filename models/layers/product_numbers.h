// ProductNumbers: the numbers that a layer's products of matrices are computed in
// (train.precision; decision 0028).
//
// Parameters, gradients, moments and what crosses a layer's boundary are fp32 always. A layer
// rounds what goes into a product to bf16 or fp16 and adds what comes out to fp32 again; what it
// keeps between two products stays rounded, which takes half the memory.
//
// fp16 has no room for small gradients. A layer multiplies the gradients that go into its products
// by a scale and divides what leaves it, so that nothing outside of a layer is scaled:
// codecs, sums over replicas and norms see the gradients themselves, whoever computes in fp16.
//
// Copies share the scale. Threads: one, that of the layers.
#pragma once

#include <memory>

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

namespace motley {

class ProductNumbers {
 public:
  ProductNumbers() : ProductNumbers(at::kFloat) {}

  // REQUIRES: type is kFloat, kBFloat16 or kHalf.
  explicit ProductNumbers(at::ScalarType type);

  [[nodiscard]] at::ScalarType type() const { return type_; }

  [[nodiscard]] bool are_fp32() const { return type_ == at::kFloat; }

  // Of the gradients from now on, for all copies; counts for fp16 alone. REQUIRES: a power of two,
  // so that no gradient loses a bit.
  void set_gradient_scale(double scale);

  // 1 but for fp16.
  [[nodiscard]] double gradient_scale() const { return *scale_; }

  // fp32 values as a product takes them; themselves in fp32.
  [[nodiscard]] at::Tensor rounded(const at::Tensor& values) const;
  // fp32 gradients as a product takes them.
  [[nodiscard]] at::Tensor scaled(const at::Tensor& gradients) const;
  // Products of values in fp32 again.
  [[nodiscard]] at::Tensor widened(const at::Tensor& values) const;
  // Products of scaled gradients in fp32 again, as they are without the scale.
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
