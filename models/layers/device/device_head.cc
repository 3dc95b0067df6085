// The head of both families on any device: norm, then scores against each row of a [V, D] matrix,
// and the summed cross entropy of the next token. The scores are overwritten by their gradient,
// some rows at a time, so that only these rows exist in fp32. The loss stays on the device.
#include <algorithm>
#include <exception>
#include <limits>
#include <utility>
#include <vector>

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
        label_smoothing_(context.loss.label_smoothing),
        class_weights_(weights_on(context)),
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
    if (!micro.training) {
      at::Tensor ranks = at::empty({rows}, ids.options());
      const at::Tensor loss = loss_in_slices(normed.y, ids, ranks);
      return loss_totals(loss, weight_of(ids), ranks);
    }
    at::Tensor scores = scores_of(normed.y, padded_weight());
    const at::Tensor loss =
        is_plain() ? loss_and_gradient(scores, ids) : weighted_loss_and_gradient(scores, ids);
    saved = {std::move(x), normed.mean, normed.inverse_deviation, normed.y, std::move(scores)};
    return loss_totals(loss, weight_of(ids), {});
  }

  Outcome read(const at::Tensor& host_totals) const override {
    return predicted_outcome(host_totals, vocab());
  }

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

  [[nodiscard]] bool is_plain() const { return label_smoothing_ == 0 && !class_weights_.defined(); }

  // [V]; undefined = all are 1.
  static at::Tensor weights_on(const LayerContext& context) {
    const std::vector<float>& weights = context.loss.class_weights;
    if (weights.empty()) return {};
    const auto count = static_cast<std::int64_t>(weights.size());
    const at::Tensor on_host = at::empty({count}, at::kFloat);
    std::ranges::copy(weights, on_host.data_ptr<float>());
    return on_host.to(context.device);
  }

  // The sum of the weights of the targets' classes.
  [[nodiscard]] at::Tensor weight_of(const at::Tensor& targets) const {
    const at::ScalarType type = exact_type(targets.device());
    if (class_weights_.defined()) return class_weights_.index_select(0, targets).sum(type);
    return at::full({}, at::Scalar(targets.numel()), targets.options().dtype(type));
  }

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

  // The weights of a loss with class weights and label smoothing (models/spec/loss_options.h).
  struct TermWeights {
    at::Tensor own;     // of each row's log-probability of its target
    at::Tensor all;     // the sum of all weights of a row
    at::Tensor spread;  // [V] of each class's log-probability; undefined without label smoothing
  };

  [[nodiscard]] TermWeights term_weights(const at::Tensor& targets) const {
    const at::TensorOptions floats = targets.options().dtype(at::kFloat);
    TermWeights terms;
    terms.own = (class_weights_.defined() ? class_weights_.index_select(0, targets)
                                          : at::ones({targets.size(0)}, floats))
                    .mul(1 - label_smoothing_);
    terms.all = terms.own;
    if (label_smoothing_ == 0) return terms;
    const double share = label_smoothing_ / static_cast<double>(vocab());
    terms.spread =
        class_weights_.defined() ? class_weights_.mul(share) : at::full({vocab()}, share, floats);
    terms.all = terms.own + terms.spread.sum();
    return terms;
  }

  // The losses of the rows whose log-probabilities are `logs`, those of their targets `of_targets`.
  [[nodiscard]] at::Tensor weighted_losses(const at::Tensor& logs,
                                           const at::Tensor& of_targets,
                                           const TermWeights& terms) const {
    const at::Tensor losses = (of_targets * terms.own).neg_();
    if (!terms.spread.defined()) return losses;
    return losses.sub_((logs.narrow(1, 0, vocab()) * terms.spread).sum(1));
  }

  // As loss_and_gradient, for a loss that is not plain.
  [[nodiscard]] at::Tensor weighted_loss_and_gradient(const at::Tensor& scores,
                                                      const at::Tensor& targets) const {
    const at::Tensor losses = at::empty({targets.size(0)}, scores.options().dtype(at::kFloat));
    for_each_slice(targets.size(0), [&](std::int64_t first, std::int64_t count) {
      at::Tensor rows = scores.narrow(0, first, count);
      const at::Tensor ids = targets.narrow(0, first, count);
      const at::Tensor of_targets = at::empty({count}, losses.options());
      const at::Tensor logs = logarithms(rows, ids, of_targets);
      const TermWeights terms = term_weights(ids);
      losses.narrow(0, first, count).copy_(weighted_losses(logs, of_targets, terms));
      at::Tensor gradients = logs.exp().mul_(terms.all.view({-1, 1}));
      if (terms.spread.defined()) gradients.narrow(1, 0, vocab()).sub_(terms.spread);
      const at::Tensor own = gradients.gather(1, ids.view({-1, 1})).view({-1}).sub_(terms.own);
      const at::Tensor row_starts = at::arange(count, ids.options()).mul_(gradients.size(1));
      gradients.view({-1}).index_copy_(0, row_starts + ids, own);
      rows.copy_(product_dtype_.scaled(gradients));
    });
    return losses.sum(exact_type(scores.device()));
  }

  // Also writes the rank of each target's score (models/kernels/kernels.h).
  at::Tensor loss_in_slices(const at::Tensor& normed,
                            const at::Tensor& ids,
                            at::Tensor& ranks) const {
    const at::Tensor losses = at::empty({ids.size(0)}, normed.options().dtype(at::kFloat));
    const at::Tensor padded = padded_weight();
    for_each_slice(ids.size(0), [&](std::int64_t first, std::int64_t count) {
      const at::Tensor targets = ids.narrow(0, first, count);
      const at::Tensor scores = scores_of(normed.narrow(0, first, count), padded);
      // The padding, of scores of -inf, is never before a target.
      ranks.narrow(0, first, count).copy_(ranks_of(scores, targets));
      const at::Tensor part = losses.narrow(0, first, count);
      const at::Tensor logs = logarithms(scores, targets, part);
      if (is_plain()) {
        part.neg_();
      } else {
        part.copy_(weighted_losses(logs, part, term_weights(targets)));
      }
    });
    return losses.sum(exact_type(normed.device()));
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
  double label_smoothing_;
  at::Tensor class_weights_;  // fp32; undefined = all are 1
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
