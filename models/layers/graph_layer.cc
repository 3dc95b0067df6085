#include "models/layers/graph_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include "base/check.h"
#include "models/device/compute_device.h"
#include "models/layers/graph_core.h"
#include "models/layers/layer_parts.h"

namespace motley {
namespace {

class GraphLayer final : public Layer {
 public:
  GraphLayer(GraphCore core, bool at_once) : core_(std::move(core)), at_once_(at_once) {}

  at::Tensor forward(at::Tensor x, const MicroContext& micro, SavedTensors& saved) override {
    const std::int64_t samples = core_.samples_of(x);
    GraphRoles given = core_.forward(std::move(x), {}, micro, saved);
    return core_.pack_outputs(given[Role::kOutput], samples);
  }

  at::Tensor backward_input(at::Tensor grad_output,
                            const MicroContext& /*micro*/,
                            SavedTensors& saved) override {
    at::Tensor grad = core_.backward_input(std::move(grad_output), saved);
    if (at_once_) core_.backward_weight(saved);
    return grad;
  }

  void backward_weight(SavedTensors& saved) override {
    if (!at_once_) core_.backward_weight(saved);
  }

 private:
  GraphCore core_;
  bool at_once_;  // the input part also runs the weight part
};

// For the summed weights of correct predictions, which are added in another order.
constexpr double kRoundingOfWeights = 1e-5;

class GraphLossLayer final : public LossLayer {
 public:
  GraphLossLayer(GraphCore core, const Package& package)
      : core_(std::move(core)),
        ignored_(package.ignored),
        counts_correct_(evaluation_of(package).count_given(Role::kCorrect) > 0) {}

  LossTotals forward(at::Tensor x,
                     const at::Tensor& targets,
                     const MicroContext& micro,
                     SavedTensors& saved) override {
    const std::int64_t samples = core_.samples_of(x);
    const bool on_host = x.device().is_cpu();
    const at::Tensor input = !micro.training && counts_correct_ ? x.clone() : at::Tensor();
    GraphRoles given = core_.forward(std::move(x), targets, micro, saved);
    if (on_host && is_mean_of_none(given)) {
      saved = {core_.zero_gradient(samples)};
      for (const Role role : {Role::kLoss, Role::kCorrect}) {
        for (at::Tensor& number : given[role]) number = at::zeros_like(number);
      }
    }
    std::vector<at::Tensor> numbers = {number(given[Role::kLoss].front()),
                                       number(given[Role::kCount].front())};
    if (const std::vector<at::Tensor>& right = given[Role::kCorrect]; !right.empty()) {
      numbers.push_back(number(right.front()));
      if (input.defined()) add_predictions(input, targets, numbers);
    }
    return {at::stack(numbers)};
  }

  Outcome read(const at::Tensor& host_totals) const override {
    for (std::int64_t i = 1; i < host_totals.size(0); ++i) {
      check_count(host_totals[i].item().toDouble());
    }
    Outcome outcome = outcome_of(host_totals);
    if (!outcome.correct) return outcome;
    if (*outcome.correct > outcome.count * (1 + kRoundingOfWeights)) {
      core_.fail(fmt::format("it counts {} correct of {}", *outcome.correct, outcome.count));
    }
    outcome.correct = std::min(*outcome.correct, outcome.count);
    outcome.predictions = predictions_of(host_totals);
    return outcome;
  }

  at::Tensor backward_input(const MicroContext& /*micro*/, SavedTensors& saved) override {
    // The core's saved tensors begin with a position, which is an integer tensor.
    if (!saved.front().is_floating_point()) return core_.backward_input({}, saved);
    return std::exchange(saved, {}).front();
  }

  void backward_weight(SavedTensors& saved) override {
    if (!saved.empty()) core_.backward_weight(saved);
  }

  at::Tensor logits_at(at::Tensor x, std::int64_t position) override {
    at::Tensor scores = core_.score(std::move(x));
    if (scores.dim() < 2) core_.fail("its scores have no dimension for classes");
    if (scores.dim() == 2) return scores;
    MOTLEY_CHECK(position >= 0 && position < scores.size(1), "position {} of {}", position,
                 scores.size(1));
    return scores.select(1, position);
  }

 private:
  [[nodiscard]] const Graph& evaluation_of(const Package& package) const {
    return package.graphs[static_cast<std::size_t>(core_.layer().graph)].evaluate;
  }

  // A loss that counts correct predictions is a cross entropy of the model's output. Adds the
  // number of targets and of those with the highest and with one of the five highest scores, if the
  // output has more classes.
  void add_predictions(const at::Tensor& x,
                       const at::Tensor& targets,
                       std::vector<at::Tensor>& numbers) {
    if (targets.is_floating_point()) return;
    at::Tensor scores = core_.score(x);
    if (scores.dim() != targets.dim() + 1) return;
    if (!has_classes_last(scores, targets)) scores = scores.movedim(1, -1);
    const std::int64_t classes = scores.size(-1);
    if (classes <= PredictionCounts::kFive) return;
    const at::Tensor ids = targets.reshape({-1});
    if (!scores.is_floating_point() || scores.numel() != ids.numel() * classes) {
      core_.fail("its scores are not one number for each target and class");
    }
    at::Tensor is_counted = ids.ge(0).logical_and(ids.lt(classes));
    if (ignored_) is_counted = is_counted.logical_and(ids.ne(*ignored_));
    const at::Tensor ranks =
        ranks_of(scores.reshape({-1, classes}), at::where(is_counted, ids, at::zeros_like(ids)));
    numbers.push_back(number(is_counted.sum()));
    for (const std::int64_t best : {std::int64_t{1}, std::int64_t{PredictionCounts::kFive}}) {
      numbers.push_back(number(ranks.lt(best).logical_and(is_counted).sum()));
    }
  }

  // Whether the classes are the scores' last dimension, as in language models, and not the second.
  static bool has_classes_last(const at::Tensor& scores, const at::Tensor& targets) {
    if (scores.dim() < 3) return true;
    std::vector<std::int64_t> without_second = scores.sizes().vec();
    without_second.erase(without_second.begin() + 1);
    return targets.sizes() != at::IntArrayRef(without_second);
  }

  static std::optional<PredictionCounts> predictions_of(const at::Tensor& host_totals) {
    constexpr std::int64_t kFirst = 3;  // after loss, count and correct
    if (host_totals.size(0) < kFirst + 3) return std::nullopt;
    const auto count = [&](std::int64_t k) {
      return static_cast<std::int64_t>(host_totals[kFirst + k].item().toDouble());
    };
    return PredictionCounts{count(0), count(1), count(2)};
  }

  [[nodiscard]] at::Tensor number(const at::Tensor& tensor) const {
    if (tensor.numel() != 1) core_.fail("its loss, count or number correct is not one number");
    return tensor.reshape({}).to(exact_type(tensor.device()));
  }

  // A user's loss may compute its sum from a mean, which is 0/0 if there are no targets. Such a
  // micro-batch adds nothing to the step: its sum and its gradient are 0. On a device that computes
  // asynchronously, this check would wait for it.
  [[nodiscard]] static bool is_mean_of_none(GraphRoles& given) {
    const at::Tensor& count = given[Role::kCount].front();
    const at::Tensor& loss = given[Role::kLoss].front();
    if (count.numel() != 1 || loss.numel() != 1) return false;
    return count.item().toDouble() == 0 && !std::isfinite(loss.item().toDouble());
  }

  void check_count(double counted) const {
    constexpr double kMax = 0x1p53;
    if (!(counted >= 0 && counted <= kMax)) core_.fail(fmt::format("it counts {}", counted));
  }

  GraphCore core_;
  std::optional<std::int64_t> ignored_;  // the target integer that the loss ignores
  bool counts_correct_;                  // in evaluation
};

}  // namespace

std::unique_ptr<Layer> make_graph_layer(std::shared_ptr<PreparedPackage> package,
                                        int index,
                                        LayerParameters parameters) {
  // Schedules all-reduce a tied gradient after the last input part of the layer that owns the
  // parameter (pipeline/execute/stage_compute.h), which is the first layer.
  const auto& layers = package->package().layers;
  const bool at_once =
      index == 0 && std::ranges::any_of(layers.back().parameters, &PackageParameter::tied);
  return std::make_unique<GraphLayer>(GraphCore(std::move(package), index, std::move(parameters)),
                                      at_once);
}

std::unique_ptr<LossLayer> make_graph_loss_layer(std::shared_ptr<PreparedPackage> package,
                                                 int index,
                                                 LayerParameters parameters) {
  const Package& described = package->package();
  return std::make_unique<GraphLossLayer>(
      GraphCore(std::move(package), index, std::move(parameters)), described);
}

}  // namespace motley
