// Fused attention with the interface of LibTorch 2's CUDA kernels: the same operations,
// preconditions and memory layouts of the results, computed by the processor's kernels.
#include "tests/support/far/torch_versions.h"

#if MOTLEY_FAR_HAS_ATTENTION

#include <array>
#include <optional>
#include <tuple>

#include <ATen/ATen.h>
#include <torch/library.h>

namespace motley::far {
namespace {

using at::Tensor;

void check_head(const Tensor& query, double dropout_p, bool is_causal) {
  TORCH_CHECK(query.dim() == 4 && query.stride(3) == 1 && query.size(3) % 8 == 0,
              "attention of the far device takes heads of 8, 16, … values beside each other");
  TORCH_CHECK(dropout_p == 0, "the far device has no random numbers of its own");
  TORCH_CHECK(is_causal, "the far device's attention is causal");
}

void check_flash_type(const Tensor& query) {
  TORCH_CHECK(query.scalar_type() == at::kHalf || query.scalar_type() == at::kBFloat16,
              "FlashAttention only support fp16 and bf16 data type");
}

// The state of an unused random generator: one number on the host and one on the device.
std::tuple<Tensor, Tensor> no_random(const Tensor& like) {
  return {at::zeros({}, at::kLong), at::zeros({}, like.options().dtype(at::kLong))};
}

std::tuple<Tensor, Tensor> compute(const Tensor& query,
                                   const Tensor& key,
                                   const Tensor& value,
                                   std::optional<double> scale) {
  return at::_scaled_dot_product_flash_attention_for_cpu(query, key, value, 0.0, true, std::nullopt,
                                                         scale);
}

std::tuple<Tensor, Tensor, Tensor> compute_backward(const Tensor& grad,
                                                    const Tensor& query,
                                                    const Tensor& key,
                                                    const Tensor& value,
                                                    const Tensor& out,
                                                    const Tensor& row_sums,
                                                    std::optional<double> scale) {
  return at::_scaled_dot_product_flash_attention_for_cpu_backward(
      grad, query, key, value, out, row_sums, 0.0, true, std::nullopt, scale);
}

std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor> flash(
    const Tensor& query,
    const Tensor& key,
    const Tensor& value,
    double dropout_p,
    bool is_causal,
    bool return_debug_mask,
    std::optional<double> scale) {
  check_head(query, dropout_p, is_causal);
  check_flash_type(query);
  TORCH_CHECK(!return_debug_mask, "the far device's attention has no mask to show");
  const auto [out, row_sums] = compute(query, key, value, scale);
  const auto [random1, random2] = no_random(query);
  return {out,     row_sums, Tensor(), Tensor(), query.sym_size(2), key.sym_size(2),
          random1, random2,  Tensor()};
}

std::tuple<Tensor, Tensor, Tensor> flash_backward(const Tensor& grad,
                                                  const Tensor& query,
                                                  const Tensor& key,
                                                  const Tensor& value,
                                                  const Tensor& out,
                                                  const Tensor& row_sums,
                                                  const Tensor& lengths_q,
                                                  const Tensor& lengths_k,
                                                  c10::SymInt longest_q,
                                                  c10::SymInt longest_k,
                                                  double dropout_p,
                                                  bool is_causal,
                                                  const Tensor& random1,
                                                  const Tensor& random2,
                                                  std::optional<double> scale) {
  check_head(query, dropout_p, is_causal);
  check_flash_type(query);
  TORCH_CHECK(!lengths_q.defined() && !lengths_k.defined() && longest_q == query.sym_size(2) &&
                  longest_k == key.sym_size(2),
              "all samples are as long");
  TORCH_CHECK(random1.defined() && random2.defined(), "what forward answered is not given back");
  return compute_backward(grad, query, key, value, out, row_sums, scale);
}

constexpr std::array<bool, 4> kGradients = {true, true, true, false};  // all but a bias

// The row sums are padded to a multiple of this.
constexpr std::int64_t kRows = 32;

std::tuple<Tensor, Tensor, Tensor, Tensor> efficient(const Tensor& query,
                                                     const Tensor& key,
                                                     const Tensor& value,
                                                     const std::optional<Tensor>& bias,
                                                     bool compute_row_sums,
                                                     double dropout_p,
                                                     bool is_causal,
                                                     std::optional<double> scale) {
  check_head(query, dropout_p, is_causal);
  TORCH_CHECK(!bias.has_value() || !bias->defined(), "the far device's attention has no bias");
  const auto [out, row_sums] = compute(query, key, value, scale);
  const auto [random1, random2] = no_random(query);
  const std::int64_t tokens = query.size(2);
  const std::int64_t rows = compute_row_sums ? (tokens + kRows - 1) / kRows * kRows : 0;
  Tensor filled = at::zeros({query.size(0), query.size(1), rows}, row_sums.options());
  if (compute_row_sums) filled.narrow(2, 0, tokens).copy_(row_sums);
  return {out, filled, random1, random2};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> efficient_backward(const Tensor& grad,
                                                              const Tensor& query,
                                                              const Tensor& key,
                                                              const Tensor& value,
                                                              const Tensor& bias,
                                                              const Tensor& out,
                                                              const Tensor& row_sums,
                                                              const Tensor& random1,
                                                              const Tensor& random2,
                                                              double dropout_p,
                                                              std::array<bool, 4> wanted,
                                                              bool is_causal,
                                                              std::optional<double> scale) {
  check_head(query, dropout_p, is_causal);
  TORCH_CHECK(!bias.defined() && wanted == kGradients, "the far device's attention has no bias");
  TORCH_CHECK(random1.defined() && random2.defined(), "what forward answered is not given back");
  auto [grad_q, grad_k, grad_v] =
      compute_backward(grad, query, key, value, out, row_sums.narrow(2, 0, query.size(2)), scale);
  return {grad_q, grad_k, grad_v, Tensor()};
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("_scaled_dot_product_flash_attention", &flash);
  library.impl("_scaled_dot_product_flash_attention_backward", &flash_backward);
  library.impl("_scaled_dot_product_efficient_attention", &efficient);
  library.impl("_scaled_dot_product_efficient_attention_backward", &efficient_backward);
}

}  // namespace
}  // namespace motley::far

#endif
