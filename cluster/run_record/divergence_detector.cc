#include "cluster/run_record/divergence_detector.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/median.h"

namespace motley {

Result<std::optional<std::string>> DivergenceDetector::add(const StepMetrics& metrics) {
  if (metrics.without_targets) return std::optional<std::string>();
  in_a_row_ = metrics.outcome.skipped ? in_a_row_ + 1 : 0;
  if (!metrics.outcome.skipped) return std::optional<std::string>();
  if (max_skipped_ > 0 && in_a_row_ >= max_skipped_) {
    return Error{
        ErrorCode::kDiverged,
        fmt::format(
            "the training diverged: {} consecutive steps were skipped, the last one step {}",
            in_a_row_, metrics.step),
        "their gradients were not finite, so the parameters did not change",
        "lower train.lr, set train.clip or lengthen train.warmup_steps; train.max_skipped is the "
        "limit"};
  }
  if (in_a_row_ > 1) return std::optional<std::string>();
  const std::string end =
      max_skipped_ > 0
          ? fmt::format("; {} consecutive ones end the run (train.max_skipped)", max_skipped_)
          : "";
  if (metrics.outcome.gradient_scale && std::isfinite(metrics.outcome.loss)) {
    return std::optional(
        fmt::format("step {} was skipped: fp16 overflow of its gradients at loss scale {}; each "
                    "skipped step halves the scale{}",
                    metrics.step, *metrics.outcome.gradient_scale, end));
  }
  return std::optional(
      fmt::format("step {} was skipped: its gradient was not finite (norm {}, loss {}){}",
                  metrics.step, metrics.outcome.grad_norm, metrics.outcome.loss, end));
}

std::optional<std::string> LossMonitor::add(const StepMetrics& metrics) {
  if (!metrics.is_computed || metrics.outcome.skipped || metrics.without_targets)
    return std::nullopt;
  std::optional<std::string> line = assess_begin(metrics);
  bool is_high = false;
  if (last_.size() == kWindow) {
    const double usual = median({last_.begin(), last_.end()});
    const auto [low, high] = std::ranges::minmax(last_);
    const double noise = std::max(usual - low, high - usual);
    const double limit = std::max({kNoises * noise, kLeastShare * usual, kLeast});
    is_high = metrics.outcome.loss > usual + limit;
    if (is_high && spike_steps_++ == 0) {
      line = fmt::format(
          "the loss jumped to {:.3f} at step {}, from {:.3f} (median of {} steps); "
          "gradient norm {:.3g}, learning rate {:.3g}",
          metrics.outcome.loss, metrics.step, usual, kWindow, metrics.outcome.grad_norm,
          metrics.outcome.lr);
    }
  }
  if (is_high && spike_steps_ < kWindow) return line;
  if (is_high) last_.clear();
  spike_steps_ = 0;
  last_.push_back(metrics.outcome.loss);
  if (last_.size() > kWindow) last_.pop_front();
  return line;
}

std::optional<std::string> LossMonitor::assess_begin(const StepMetrics& metrics) {
  if (metrics.step == 1) first_ = metrics.outcome.loss;
  if (!first_ || last_.size() == kWindow) return {};
  risen_steps_ = *first_ > 0 && metrics.outcome.loss > kRise * *first_ ? risen_steps_ + 1 : 0;
  if (risen_steps_ < kRisenSteps) return {};
  const double before = *std::exchange(first_, std::nullopt);
  return fmt::format(
      "the loss has risen to {:.3f} at step {}, from {:.3f} at the first; gradient norm {:.3g}, "
      "learning rate {:.3g}: lower train.lr or lengthen train.warmup_steps",
      metrics.outcome.loss, metrics.step, before, metrics.outcome.grad_norm, metrics.outcome.lr);
}

}  // namespace motley
