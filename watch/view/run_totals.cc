#include "watch/view/run_totals.h"

#include <algorithm>
#include <cmath>

namespace motley {
namespace {

// Missing and invalid values add nothing.
void grow(double& sum, double value) {
  if (std::isfinite(value) && value > 0) sum += value;
}

void grow(StepTimes& sums, const StepTimes& times) {
  grow(sums.compute_s, times.compute_s);
  grow(sums.codec_s, times.codec_s);
  grow(sums.optimizer_s, times.optimizer_s);
  for (std::size_t cause = 0; cause < kWaitCauseNames.size(); ++cause) {
    grow(sums.wait_s.seconds[cause], times.wait_s.seconds[cause]);
  }
}

}  // namespace

bool RunTotals::take(const StepMetrics& metrics) {
  const auto place = std::ranges::lower_bound(counted_, metrics.step, {}, &Counted::step);
  if (place != counted_.end() && place->step == metrics.step) {
    const bool is_other = place->time_s < metrics.time_s || place->time_s > metrics.time_s;
    place->time_s = metrics.time_s;
    return is_other;
  }
  if (place == counted_.begin() && has_forgotten_) return false;
  counted_.insert(place, {metrics.step, metrics.time_s});
  if (counted_.size() > kRemembered) {
    counted_.pop_front();
    has_forgotten_ = true;
  }
  return true;
}

void RunTotals::add(const StepMetrics& metrics) {
  if (const auto result = held_out_result(metrics)) {
    sums_.evaluation = result;
    sums_.best = with_evaluation({sums_.best}, metrics.step, result->loss, false).best;
  }
  if (!take(metrics)) return;
  ++sums_.steps;
  sums_.skipped += metrics.outcome.skipped ? 1 : 0;
  sums_.without_targets += metrics.without_targets ? 1 : 0;
  grow(sums_.step_s, metrics.step_s);
  grow(sums_.tokens, static_cast<double>(metrics.outcome.tokens));
  grow(sums_.sent_bytes, static_cast<double>(metrics.wire_bytes));
  if (sums_.ranks.size() < metrics.ranks.size()) sums_.ranks.resize(metrics.ranks.size());
  for (std::size_t r = 0; r < metrics.ranks.size(); ++r)
    grow(sums_.ranks[r], metrics.ranks[r].times);
  for (const StepMetrics::Sent& sent : metrics.links) {
    const std::pair link(sent.from, sent.to);
    if (sums_.link_bytes.size() == kLinksMax && !sums_.link_bytes.contains(link)) continue;
    grow(sums_.link_bytes[link], static_cast<double>(sent.bytes));
  }
}

void RunTotals::add(const RunEvent& event) {
  if (event.kind == RunEventKind::kCheckpoint) sums_.saved = std::pair(event.step, event.time_s);
  ++sums_.events[event.kind];
}

}  // namespace motley
