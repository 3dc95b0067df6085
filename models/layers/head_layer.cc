// The head of both families: norm, then scores against each row of a [V, D] matrix, and the summed
// cross entropy of the next token. Scores are converted to their gradient slice by slice, so one B
// T x V matrix is saved for backward; without backward only a slice of rows exists at a time.
#include <algorithm>
#include <span>
#include <utility>

#include <ATen/ATen.h>

#include "base/check.h"
#include "models/kernels/kernels.h"
#include "models/kernels/matrix_product.h"
#include "models/layers/layer_parts.h"

namespace motley {
namespace {

// Rows with about 16 MiB of scores, but enough for an efficient product.
std::int64_t rows_at_once(std::int64_t vocab) {
  return std::max<std::int64_t>(128, (std::int64_t{4} << 20) / vocab);
}

class Head final : public LossLayer {
 public:
  Head(const LayerContext& context, const LayerParameters& parameters)
      : loss_(context.loss),
        norm_(parameters, 0),
        weight_(parameters.rounded[2]),
        grad_weight_(parameters.gradients[2]) {}

  LossTotals forward(at::Tensor x,
                     const at::Tensor& targets,
                     const MicroContext& micro,
                     SavedTensors& saved) override {
    const at::Tensor x_rows = as_matrix(x);
    const std::int64_t rows = x_rows.size(0);
    const std::int64_t vocab = weight_.size(0);
    const auto* ids = targets.data_ptr<std::int64_t>();
    MOTLEY_CHECK(targets.numel() == rows, "{} targets for {} tokens", targets.numel(), rows);
    MOTLEY_CHECK(std::all_of(ids, ids + rows, [&](auto id) { return id >= 0 && id < vocab; }),
                 "a target is outside the vocabulary of {}", vocab);
    Norm::Output normed = norm_.forward(x_rows);
    const std::int64_t slice = std::min(rows, rows_at_once(vocab));
    at::Tensor logits = at::empty({micro.training ? rows : slice, vocab}, x.options());
    double loss_sum = 0;
    at::Tensor ranks;
    if (!micro.training) ranks = at::empty({rows}, at::kLong);
    for (std::int64_t first = 0; first < rows; first += slice) {
      const std::int64_t count = std::min(slice, rows - first);
      at::Tensor part = logits.narrow(0, micro.training ? first : 0, count);
      product_into(part, normed.y.narrow(0, first, count), weight_.t());
      if (ranks.defined()) {
        kernels::target_ranks(part.data_ptr<float>(), ids + first, count, vocab,
                              ranks.data_ptr<std::int64_t>() + first);
      }
      loss_sum += summed_loss(part, ids + first, micro.training);
    }
    if (micro.training) {
      saved = {std::move(x), normed.mean, normed.inverse_deviation, normed.y, std::move(logits)};
    }
    return loss_totals(at::scalar_tensor(loss_sum, at::kDouble),
                       at::scalar_tensor(weight_of({ids, ids + rows}), at::kDouble), ranks);
  }

  Outcome read(const at::Tensor& host_totals) const override {
    return predicted_outcome(host_totals, weight_.size(0));
  }

  at::Tensor backward_input(const MicroContext& /*micro*/, SavedTensors& saved) override {
    const SavedTensors kept = std::exchange(saved, {});
    const at::Tensor& x = kept[0];
    const at::Tensor& grad_logits = kept[4];
    saved = {kept[3], grad_logits};
    return norm_.backward(product(grad_logits, weight_), as_matrix(x), kept[1], kept[2]).view_as(x);
  }

  void backward_weight(SavedTensors& saved) override {
    const SavedTensors kept = std::exchange(saved, {});
    add_gradient_product(grad_weight_, kept[1], kept[0], weight_.scalar_type());
  }

  at::Tensor logits_at(at::Tensor x, std::int64_t position) override {
    return product(norm_.forward(x.select(1, position).contiguous()).y, weight_.t());
  }

 private:
  // Of some rows of scores, which become their gradient if it is wanted.
  [[nodiscard]] double summed_loss(at::Tensor& scores,
                                   const std::int64_t* targets,
                                   bool gradient) const {
    auto* const logits = scores.data_ptr<float>();
    const std::int64_t rows = scores.size(0);
    const std::int64_t vocab = scores.size(1);
    if (loss_.are_plain()) return kernels::cross_entropy(logits, targets, rows, vocab, gradient);
    return kernels::weighted_cross_entropy(logits, targets, rows, vocab, class_weights(),
                                           loss_.label_smoothing, gradient);
  }

  [[nodiscard]] const float* class_weights() const {
    return loss_.class_weights.empty() ? nullptr : loss_.class_weights.data();
  }

  // The sum of the weights of the targets' classes.
  [[nodiscard]] double weight_of(std::span<const std::int64_t> targets) const {
    if (loss_.class_weights.empty()) return static_cast<double>(targets.size());
    double sum = 0;
    for (const std::int64_t target : targets) {
      sum += loss_.class_weights[static_cast<std::size_t>(target)];
    }
    return sum;
  }

  LossOptions loss_;
  Norm norm_;
  at::Tensor weight_;  // rounded
  at::Tensor grad_weight_;
};

}  // namespace

std::unique_ptr<LossLayer> make_head(const LayerContext& context, LayerParameters parameters) {
  return std::make_unique<Head>(context, parameters);
}

}  // namespace motley
