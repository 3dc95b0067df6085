#include "record/held_out_result.h"

#include <fmt/format.h>

namespace motley {

std::optional<HeldOutResult> held_out_result(const StepMetrics& metrics) {
  if (!metrics.eval_loss) return std::nullopt;
  return HeldOutResult{.step = metrics.step,
                       .loss = *metrics.eval_loss,
                       .perplexity = metrics.eval_perplexity,
                       .accuracy = metrics.eval_accuracy,
                       .top5_accuracy = metrics.eval_top5_accuracy};
}

std::string held_out_text(const HeldOutResult& result) {
  std::string text = fmt::format("held-out {:.3f}", result.loss);
  if (result.perplexity) text += fmt::format(" (perplexity {:.4g})", *result.perplexity);
  if (result.accuracy) text += fmt::format(", {:.2f} % correct", *result.accuracy * 100);
  if (result.top5_accuracy) {
    text += fmt::format(", {:.2f} % in the top 5", *result.top5_accuracy * 100);
  }
  return text;
}

}  // namespace motley
