#include "measure/undisturbed.h"

#include <algorithm>

#include "base/check.h"

namespace motley {
namespace {

constexpr double kAlike = 1.1;

double undisturbed_s(double first_s, double again_s) {
  const auto [shorter_s, longer_s] = std::minmax(first_s, again_s);
  return longer_s > kAlike * shorter_s ? shorter_s : (shorter_s + longer_s) / 2;
}

}  // namespace

LayerSample undisturbed(const LayerSample& first, const LayerSample& again) {
  MOTLEY_CHECK(
      first.micro_batch == again.micro_batch && first.split.has_value() == again.split.has_value(),
      "samples of {} and {}", first.micro_batch, again.micro_batch);
  LayerSample both = first;
  both.forward_s = undisturbed_s(first.forward_s, again.forward_s);
  both.backward_s = undisturbed_s(first.backward_s, again.backward_s);
  both.forward_spread_s = undisturbed_s(first.forward_spread_s, again.forward_spread_s);
  both.backward_spread_s = undisturbed_s(first.backward_spread_s, again.backward_spread_s);
  both.saved_bytes = std::max(first.saved_bytes, again.saved_bytes);
  both.workspace_bytes = std::max(first.workspace_bytes, again.workspace_bytes);
  if (first.split) {
    both.split->input_s =
        std::min(undisturbed_s(first.split->input_s, again.split->input_s), both.backward_s);
    both.split->weight_s = undisturbed_s(first.split->weight_s, again.split->weight_s);
    both.split->queued_bytes = std::max(first.split->queued_bytes, again.split->queued_bytes);
  }
  return both;
}

}  // namespace motley
