#include "measure/undisturbed.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace motley {
namespace {

constexpr double kAlike = 1.1;
constexpr double kAlikeOfFew = 1.25;

struct Time {
  double s = 0;
  double spread_s = 0;
};

Time undisturbed(Time first, Time again, bool again_is_known) {
  const double alike = again_is_known ? kAlike : kAlikeOfFew;
  const double apart_s = std::abs(first.s - again.s);
  if (apart_s > (alike - 1) * std::min(first.s, again.s) &&
      apart_s > first.spread_s + again.spread_s) {
    return first.s < again.s ? first : again;
  }
  if (!again_is_known) return first;
  return {(first.s + again.s) / 2, (first.spread_s + again.spread_s) / 2};
}

}  // namespace

LayerSample undisturbed(const LayerSample& first, const LayerSample& again, int again_runs) {
  MOTLEY_CHECK(
      first.micro_batch == again.micro_batch && first.split.has_value() == again.split.has_value(),
      "samples of {} and {}", first.micro_batch, again.micro_batch);
  const bool is_known = again_runs >= kManyRuns;
  const Time forward = undisturbed({first.forward_s, first.forward_spread_s},
                                   {again.forward_s, again.forward_spread_s}, is_known);
  const Time backward = undisturbed({first.backward_s, first.backward_spread_s},
                                    {again.backward_s, again.backward_spread_s}, is_known);
  LayerSample both = first;
  both.forward_s = forward.s;
  both.forward_spread_s = forward.spread_s;
  both.backward_s = backward.s;
  both.backward_spread_s = backward.spread_s;
  both.saved_bytes = std::max(first.saved_bytes, again.saved_bytes);
  both.workspace_bytes = std::max(first.workspace_bytes, again.workspace_bytes);
  if (!first.split) return both;
  const auto part_s = [&](double first_s, double again_s) {
    return undisturbed({first_s, 0}, {again_s, 0}, is_known).s;
  };
  both.split->input_s =
      std::min(part_s(first.split->input_s, again.split->input_s), both.backward_s);
  both.split->weight_s = part_s(first.split->weight_s, again.split->weight_s);
  both.split->queued_bytes = std::max(first.split->queued_bytes, again.split->queued_bytes);
  return both;
}

}  // namespace motley
