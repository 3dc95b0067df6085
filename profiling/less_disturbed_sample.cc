#include "profiling/less_disturbed_sample.h"

#include <algorithm>

#include "base/check.h"

namespace motley {
namespace {

constexpr double kSimilarRatio = 1.1;  // longer / shorter

struct Time {
  double s = 0;
  double spread_s = 0;
};

Time less_disturbed(Time first, Time again) {
  const auto [shorter, longer] = std::ranges::minmax(first, again, {}, &Time::s);
  if (longer.s > kSimilarRatio * shorter.s) return shorter;
  return {(first.s + again.s) / 2, (first.spread_s + again.spread_s) / 2};
}

}  // namespace

LayerSample less_disturbed_sample(const LayerSample& first, const LayerSample& again) {
  MOTLEY_CHECK(
      first.micro_batch == again.micro_batch && first.split.has_value() == again.split.has_value(),
      "samples of {} and {}", first.micro_batch, again.micro_batch);
  const Time forward = less_disturbed({first.forward_s, first.forward_spread_s},
                                      {again.forward_s, again.forward_spread_s});
  const Time backward = less_disturbed({first.backward_s, first.backward_spread_s},
                                       {again.backward_s, again.backward_spread_s});
  LayerSample combined = first;
  combined.forward_s = forward.s;
  combined.forward_spread_s = forward.spread_s;
  combined.backward_s = backward.s;
  combined.backward_spread_s = backward.spread_s;
  combined.saved_bytes = std::max(first.saved_bytes, again.saved_bytes);
  combined.workspace_bytes = std::max(first.workspace_bytes, again.workspace_bytes);
  if (!first.split) return combined;
  const auto part_s = [](double first_s, double again_s) {
    return less_disturbed({first_s}, {again_s}).s;
  };
  combined.split->input_s =
      std::min(part_s(first.split->input_s, again.split->input_s), combined.backward_s);
  combined.split->weight_s = part_s(first.split->weight_s, again.split->weight_s);
  combined.split->queued_bytes = std::max(first.split->queued_bytes, again.split->queued_bytes);
  return combined;
}

}  // namespace motley
