// The head of both families on any device: norm, then scores against each row of a [V, D] matrix,
// and the summed cross entropy of the next token. The scores are overwritten by their gradient,
// some rows at a time, so that only these rows exist in fp32. The loss stays on the device.
#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include <ATen/ATen.h>

#include "base/check.h"
#include "models/device/compute_device.h"
#include "models/layers/device/device_parts.h"

namespace motley {
namespace {

// Rows with about 256 MiB of scores in fp32, but enough for an efficient product.
std::int64_t device_rows_at_once(std::int64_t vocab) {
  return std::max<std::int64_t>(128, (std::int64_t{64} << 20) / vocab);
}

// Whether log-softmax of bf16 or fp16 values can return fp32 in one operation. Processors, for
// example, do not support that.
bool widens_softmax(c10::Device device, at::ScalarType type) {
  if (type == at::kFloat) return false;
  try {
    static_cast<void>(at::_log_softmax(at::zeros({1, 8}, at::TensorOptions(device).dtype(type)), 1,
                                       /*half_to_float=*/true));
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

class DeviceHead final : public LossLayer {
 public:
  DeviceHead(const LayerContext& context, const LayerParameters& parameters)
      : product_dtype_(context.product_dtype),
        norm_(parameters, 0),
        weight_(parameters.rounded[2]),
        grad_weight_(parameters.gradients[2]),
        widens_softmax_(widens_softmax(context.device, context.product_dtype.type())) {}

  LossTotals forward(at::Tensor x,
                     const at::Tensor& targets,
                     const MicroContext& micro,
                     SavedTensors& saved) override {
    const at::Tensor x_rows = as_matrix(x);
    const std::int64_t rows = x_rows.size(0);
    MOTLEY_CHECK(targets.numel() == rows, "{} targets for {} tokens", targets.numel(), rows);
    const at::Tensor ids = targets.view({-1});
    Norm::Output normed = norm_.forward(x_rows);
    normed.y = product_dtype_.rounded(normed.y);
    if (!micro.training) return loss_totals(loss_in_slices(normed.y, ids), rows);
    at::Tensor scores = scores_of(normed.y, padded_weight());
    const at::Tensor loss = loss_and_gradient(scores, ids);
    saved = {std::move(x), normed.mean, normed.inverse_deviation, normed.y, std::move(scores)};
    return loss_totals(loss, rows);
  }

  Outcome read(const at::Tensor& host_totals) const override { return outcome_of(host_totals); }

  at::Tensor backward_input(const MicroContext& /*micro*/, SavedTensors& saved) override {
    const SavedTensors kept = std::exchange(saved, {});
    const at::Tensor& x = kept[0];
    const at::Tensor& grad_logits = kept[4];
    saved = {kept[3], grad_logits};
    const at::Tensor grad_normed = product_dtype_.unscaled(at::mm(grad_logits, padded_weight()));
    return norm_.backward(grad_normed, as_matrix(x), kept[1], kept[2]).view_as(x);
  }

  void backward_weight(SavedTensors& saved) override {
    const SavedTensors kept = std::exchange(saved, {});
    product_dtype_.add_product(grad_weight_, kept[1].narrow(1, 0, vocab()).t(), kept[0]);
  }

  at::Tensor logits_at(at::Tensor x, std::int64_t position) override {
    const at::Tensor normed = norm_.forward(x.select(1, position).contiguous()).y;
    return product_dtype_.widened(at::mm(product_dtype_.rounded(normed), weight_.t()));
  }

 private:
  [[nodiscard]] std::int64_t vocab() const { return weight_.size(0); }

  // Padded with rows of zeros up to score_row(V). The copy takes as long as some hundred rows of
  // the product.
  [[nodiscard]] at::Tensor padded_weight() const {
    const std::int64_t lacking = score_row(vocab()) - vocab();
    return lacking == 0 ? weight_ : at::constant_pad_nd(weight_, {0, 0, 0, lacking});
  }

  // [R, score_row(V)], with -inf in the padding.
  [[nodiscard]] at::Tensor scores_of(const at::Tensor& normed, const at::Tensor& padded) const {
    at::Tensor scores = at::mm(normed, padded.t());
    constexpr double kNever = -std::numeric_limits<double>::infinity();
    scores.narrow(1, vocab(), scores.size(1) - vocab()).fill_(kNever);
    return scores;
  }

  // The log-probabilities of the rows of scores, fp32; those of the rows' targets are written to
  // of_targets.
  [[nodiscard]] at::Tensor logarithms(const at::Tensor& scores,
                                      const at::Tensor& targets,
                                      at::Tensor of_targets) const {
    const at::Tensor logarithms = at::_log_softmax(
        widens_softmax_ ? scores : product_dtype_.widened(scores), 1, widens_softmax_);
    of_targets.copy_(logarithms.gather(1, targets.view({-1, 1})).view({-1}));
    return logarithms;
  }

  // Overwrites scores with the scaled gradient of their summed cross entropy, softmax - one_hot.
  at::Tensor loss_and_gradient(const at::Tensor& scores, const at::Tensor& targets) const {
    const at::Tensor of_targets = at::empty({targets.size(0)}, scores.options().dtype(at::kFloat));
    for_each_slice(targets.size(0), [&](std::int64_t first, std::int64_t count) {
      at::Tensor rows = scores.narrow(0, first, count);
      const at::Tensor logs =
          logarithms(rows, targets.narrow(0, first, count), of_targets.narrow(0, first, count));
      if (product_dtype_.gradient_scale() == 1.0) {
        at::exp_out(rows, logs);
      } else {
        rows.copy_(product_dtype_.scaled(logs.exp()));
      }
    });
    const at::Tensor loss = of_targets.sum(exact_type(scores.device())).neg_();
    // In fp32: 1 - p of a nearly certain target has no digits in bf16.
    const at::Tensor gradients = product_dtype_.scaled(of_targets.exp().sub_(1));
    const at::Tensor row_starts =
        at::arange(targets.size(0), targets.options()).mul_(scores.size(1));
    scores.view({-1}).index_copy_(0, row_starts + targets, gradients);
    return loss;
  }

  at::Tensor loss_in_slices(const at::Tensor& normed, const at::Tensor& ids) const {
    const at::Tensor of_targets = at::empty({ids.size(0)}, normed.options().dtype(at::kFloat));
    const at::Tensor padded = padded_weight();
    for_each_slice(ids.size(0), [&](std::int64_t first, std::int64_t count) {
      static_cast<void>(logarithms(scores_of(normed.narrow(0, first, count), padded),
                                   ids.narrow(0, first, count),
                                   of_targets.narrow(0, first, count)));
    });
    return of_targets.sum(exact_type(normed.device())).neg_();
  }

  // body(first row, rows).
  template <class Body>
  void for_each_slice(std::int64_t rows, const Body& body) const {
    const std::int64_t slice = device_rows_at_once(vocab());
    for (std::int64_t first = 0; first < rows; first += slice) {
      body(first, std::min(slice, rows - first));
    }
  }

  ProductDtype product_dtype_;
  Norm norm_;
  at::Tensor weight_;
  at::Tensor grad_weight_;
  bool widens_softmax_;
};

}  // namespace

std::unique_ptr<LossLayer> make_device_head(const LayerContext& context,
                                            LayerParameters parameters) {
  return std::make_unique<DeviceHead>(context, parameters);
}

}  // namespace motley
