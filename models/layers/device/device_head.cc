// The head of both families on any device: norm, then scores against each row of a [V, D] matrix,
// and the summed cross entropy of the next token. The scores are turned into their gradient in
// their own memory; without backward only a slice of rows exists at a time. The loss stays on the
// device.
#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

#include "base/check.h"
#include "models/device/compute_device.h"
#include "models/layers/device/device_parts.h"

namespace motley {
namespace {

// Rows whose scores take about 64 MiB, but enough for an efficient product.
std::int64_t device_rows_at_once(std::int64_t vocab) {
  return std::max<std::int64_t>(128, (std::int64_t{16} << 20) / vocab);
}

// The summed cross entropy of the rows of logits_RV against targets_R. Leaves in the rows the
// powers of their distance to their largest, which to_gradient turns into the gradient.
struct CrossEntropy {
  at::Tensor loss;
  at::Tensor sums;  // of the rows' powers, [R, 1]
};

CrossEntropy cross_entropy_in_place(const at::Tensor& logits, const at::Tensor& targets) {
  const at::ScalarType exact = exact_type(logits.device());
  logits.sub_(logits.amax({1}, /*keepdim=*/true));
  const at::Tensor of_targets = logits.gather(1, targets.view({-1, 1}));
  at::Tensor sums = logits.exp_().sum({1}, /*keepdim=*/true);
  at::Tensor losses = at::log(sums.to(exact)).sub_(of_targets);
  return {losses.sum(), std::move(sums)};
}

// From there to their gradient, softmax - one_hot.
void to_gradient(const at::Tensor& logits, const at::Tensor& sums, const at::Tensor& targets) {
  logits.div_(sums);
  const at::Tensor first_of_rows =
      at::arange(logits.size(0), targets.options()).mul_(logits.size(1));
  logits.view({-1}).index_add_(0, first_of_rows + targets,
                               at::full({logits.size(0)}, -1.0, logits.options()));
}

class DeviceHead final : public LossLayer {
 public:
  DeviceHead(const LayerContext& context, const LayerParameters& parameters)
      : numbers_(context.numbers),
        norm_(parameters, 0),
        weight_(parameters.rounded[2]),
        grad_weight_(parameters.gradients[2]) {}

  LossNumbers forward(at::Tensor x,
                      const at::Tensor& targets,
                      const MicroContext& micro,
                      SavedTensors& saved) override {
    const at::Tensor x_rows = as_matrix(x);
    const std::int64_t rows = x_rows.size(0);
    MOTLEY_CHECK(targets.numel() == rows, "{} targets for {} tokens", targets.numel(), rows);
    const at::Tensor ids = targets.view({-1});
    Norm::Output normed = norm_.forward(x_rows);
    normed.y = numbers_.rounded(normed.y);
    if (!micro.training) return loss_numbers(loss_in_slices(normed.y, ids), rows);
    const at::Tensor logits = scores(normed.y);
    const CrossEntropy entropy = cross_entropy_in_place(logits, ids);
    to_gradient(logits, entropy.sums, ids);
    saved = {std::move(x), normed.mean, normed.inverse_deviation, normed.y,
             numbers_.scaled(logits)};
    return loss_numbers(entropy.loss, rows);
  }

  Outcome read(const at::Tensor& host_numbers) const override { return outcome_of(host_numbers); }

  at::Tensor backward_input(const MicroContext& /*micro*/, SavedTensors& saved) override {
    const SavedTensors kept = std::exchange(saved, {});
    const at::Tensor& x = kept[0];
    const at::Tensor& grad_logits = kept[4];
    saved = {kept[3], grad_logits};
    const at::Tensor grad_normed = numbers_.unscaled(at::mm(grad_logits, weight_));
    return norm_.backward(grad_normed, as_matrix(x), kept[1], kept[2]).view_as(x);
  }

  void backward_weight(SavedTensors& saved) override {
    const SavedTensors kept = std::exchange(saved, {});
    numbers_.add_product(grad_weight_, kept[1].t(), kept[0]);
  }

  at::Tensor logits_at(at::Tensor x, std::int64_t position) override {
    return scores(numbers_.rounded(norm_.forward(x.select(1, position).contiguous()).y));
  }

 private:
  // fp32.
  at::Tensor scores(const at::Tensor& normed) const {
    return numbers_.widened(at::mm(normed, weight_.t()));
  }

  at::Tensor loss_in_slices(const at::Tensor& normed, const at::Tensor& ids) const {
    const std::int64_t slice = device_rows_at_once(weight_.size(0));
    at::Tensor loss = at::zeros({}, normed.options().dtype(exact_type(normed.device())));
    for (std::int64_t first = 0; first < ids.size(0); first += slice) {
      const std::int64_t count = std::min(slice, ids.size(0) - first);
      loss.add_(cross_entropy_in_place(scores(normed.narrow(0, first, count)),
                                       ids.narrow(0, first, count))
                    .loss);
    }
    return loss;
  }

  ProductNumbers numbers_;
  Norm norm_;
  at::Tensor weight_;
  at::Tensor grad_weight_;
};

}  // namespace

std::unique_ptr<LossLayer> make_device_head(const LayerContext& context,
                                            LayerParameters parameters) {
  return std::make_unique<DeviceHead>(context, parameters);
}

}  // namespace motley
