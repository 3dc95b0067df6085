// Causal attention by explicit products of whole score matrices, in operations that every device
// has.
//
// It processes a slice of samples at once: as many as have about kScoresAtOnce scores. This bounds
// the memory besides the saved probabilities, and small samples are not processed one by one. Saved
// for backward: the probabilities, before dropout.
#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/ATen.h>

#include "models/layers/device/attention_core.h"
#include "models/layers/tensor_dropout.h"

namespace motley {
namespace {

constexpr std::int64_t kScoresAtOnce = std::int64_t{16} << 20;

class ExplicitAttention final : public AttentionCore {
 public:
  explicit ExplicitAttention(const LayerContext& context)
      : product_dtype_(context.product_dtype),
        p_(context.model.dropout),
        index_(context.index),
        width_(context.model.width),
        heads_(context.model.heads),
        scale_(1.0 / std::sqrt(static_cast<double>(width_ / heads_))) {}

  AttentionPath path() const override { return AttentionPath::kExplicit; }

  at::Tensor forward(const at::Tensor& qkv,
                     std::int64_t tokens,
                     const MicroContext& micro,
                     SavedTensors& kept) override {
    tokens_ = tokens;
    const std::int64_t samples = qkv.size(0) / tokens;
    const auto matrices = [&](std::int64_t count) {
      return at::empty({count * heads_, tokens_, tokens_}, qkv.options());
    };
    at::Tensor outputs = at::empty({qkv.size(0), width_}, qkv.options());
    at::Tensor probabilities;
    if (micro.training) probabilities = matrices(samples);
    const at::Tensor future = future_mask(qkv);
    for_each_slice(samples, [&](Slice slice) {
      const at::Tensor p = micro.training ? of_heads(probabilities, slice) : matrices(slice.count);
      slice_forward(slice, qkv, future, micro, p, outputs);
    });
    if (micro.training) kept = {std::move(probabilities)};
    return outputs;
  }

  at::Tensor backward(const at::Tensor& grad_outputs,
                      const at::Tensor& qkv,
                      const at::Tensor& /*outputs*/,
                      std::int64_t tokens,
                      const MicroContext& micro,
                      const SavedTensors& kept) override {
    tokens_ = tokens;
    at::Tensor grad_qkv = at::empty_like(qkv);
    for_each_slice(qkv.size(0) / tokens, [&](Slice slice) {
      slice_backward(slice, grad_outputs, qkv, kept.front(), micro, grad_qkv);
    });
    return grad_qkv;
  }

 private:
  // Samples that are processed at once.
  struct Slice {
    std::int64_t first = 0;
    std::int64_t count = 0;
  };

  template <class Body>
  void for_each_slice(std::int64_t samples, const Body& body) const {
    const std::int64_t scores = heads_ * tokens_ * tokens_;
    const std::int64_t at_once = std::max<std::int64_t>(1, kScoresAtOnce / scores);
    for (std::int64_t first = 0; first < samples; first += at_once) {
      body(Slice{first, std::min(at_once, samples - first)});
    }
  }

  // Added to scores: -inf for positions after the row's.
  at::Tensor future_mask(const at::Tensor& like) const {
    constexpr double kNever = -std::numeric_limits<double>::infinity();
    return at::full({tokens_, tokens_}, kNever, like.options()).triu_(1);
  }

  // Computes the slice's probabilities p and its rows of `outputs`.
  void slice_forward(Slice slice,
                     const at::Tensor& qkv,
                     const at::Tensor& future,
                     const MicroContext& micro,
                     at::Tensor p,
                     const at::Tensor& outputs) const {
    const at::Tensor q = by_head(part(qkv, slice, 0));
    const at::Tensor k = by_head(part(qkv, slice, 1));
    at::_softmax_out(p, at::baddbmm(future, q, k.transpose(1, 2), 1, scale_), -1,
                     /*half_to_float=*/false);
    at::Tensor used = p;
    if (drops(micro)) {
      used = p.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
      drop({used.view({-1, tokens_})}, slice, micro);
      used = product_dtype_.rounded(used);
    }
    put(part(outputs, slice, 0), at::bmm(used, by_head(part(qkv, slice, 2))));
  }

  // From the gradient of the outputs to that of queries, keys and values.
  void slice_backward(Slice slice,
                      const at::Tensor& grad_outputs,
                      const at::Tensor& qkv,
                      const at::Tensor& probabilities,
                      const MicroContext& micro,
                      const at::Tensor& grad_qkv) const {
    const at::Tensor p = of_heads(probabilities, slice);
    const at::Tensor grad_out = by_head(part(grad_outputs, slice, 0));
    at::Tensor grad_p = at::bmm(grad_out, by_head(part(qkv, slice, 2)).transpose(1, 2));
    at::Tensor used = p;
    if (drops(micro)) {
      used = p.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
      grad_p = product_dtype_.widened(grad_p);
      drop({used.view({-1, tokens_}), grad_p.view({-1, tokens_})}, slice, micro);
      used = product_dtype_.rounded(used);
      grad_p = product_dtype_.rounded(grad_p);
    }
    put(part(grad_qkv, slice, 2), at::bmm(used.transpose(1, 2), grad_out));
    used.reset();
    const at::Tensor grad_scores = at::_softmax_backward_data(grad_p, p, -1, p.scalar_type());
    grad_p.reset();
    put(part(grad_qkv, slice, 0), at::bmm(grad_scores, by_head(part(qkv, slice, 1))).mul_(scale_));
    put(part(grad_qkv, slice, 1),
        at::bmm(grad_scores.transpose(1, 2), by_head(part(qkv, slice, 0))).mul_(scale_));
  }

  bool drops(const MicroContext& micro) const { return p_ != 0.0 && micro.training; }

  // Each row of the slice's scores begins a new dropout tile.
  void drop(at::TensorList rows_of_some, Slice slice, const MicroContext& micro) const {
    const DropoutStream stream(p_, micro, index_, DropoutSite::kProbabilities);
    drop_rows_in_place(stream, rows_of_some, slice.first * heads_ * tokens_);
  }

  // The slice of a tensor with one matrix for each head.
  at::Tensor of_heads(const at::Tensor& matrices, Slice slice) const {
    return matrices.narrow(0, slice.first * heads_, slice.count * heads_);
  }

  // A view [samples, heads, tokens, head width] of the slice of a matrix. Its rows hold, per
  // position, one or three (which = query, key, value) times the width.
  at::Tensor part(const at::Tensor& matrix, Slice slice, std::int64_t which) const {
    return matrix.narrow(0, slice.first * tokens_, slice.count * tokens_)
        .narrow(1, which * width_, width_)
        .view({slice.count, tokens_, heads_, width_ / heads_})
        .transpose(1, 2);
  }

  // As a batch of matrices, for products; a copy if samples lie between the heads.
  at::Tensor by_head(const at::Tensor& some) const {
    return some.reshape({-1, tokens_, width_ / heads_});
  }

  static void put(const at::Tensor& place, const at::Tensor& matrices) {
    place.copy_(matrices.view(place.sizes()));
  }

  ProductDtype product_dtype_;
  double p_;
  int index_;
  std::int64_t width_;
  std::int64_t heads_;
  double scale_;
  std::int64_t tokens_ = 0;  // per sample, of the current micro-batch
};

}  // namespace

std::unique_ptr<AttentionCore> make_explicit_attention(const LayerContext& context) {
  return std::make_unique<ExplicitAttention>(context);
}

}  // namespace motley
