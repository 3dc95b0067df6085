#include "partitioner/period_search/whole_model_placements.h"

#include <algorithm>
#include <utility>

#include "partitioner/cost/throughput_bound.h"

namespace motley {
namespace {

// nullopt if it does not fit.
std::optional<ShapedCandidate> whole_on(std::vector<int> slots,
                                        const StageTable& table,
                                        const StepEstimate& estimate) {
  const double factor = table.cost().single_device_factor_of(slots);
  Candidate whole;
  whole.stages.push_back({std::move(slots), {}, 0, false, 0});
  if (!estimate.rate(whole)) return std::nullopt;
  // All replicas begin at once. The estimate assumes a pipeline, where the first micro-batch passes
  // every stage before each replica of the last has one.
  whole.estimate_s = whole.period_s * table.shape().micro_batches * factor;
  return ShapedCandidate{table.shape(), std::move(whole)};
}

bool is_shorter(const ShapedCandidate& a, const ShapedCandidate& b) {
  return a.candidate.estimate_s < b.candidate.estimate_s;
}

}  // namespace

void WholeModelPlacements::add(const StageTable& table,
                               const SearchSpace& space,
                               std::span<const int> slots) {
  const StepEstimate estimate(table, space);
  for (const int slot : slots) {
    const auto whole = whole_on({slot}, table, estimate);
    if (whole && (!single_ || is_shorter(*whole, *single_))) single_ = whole;
  }
  if (!space.replicas) return;
  const ThroughputBound throughput_bound(table, space);
  std::vector<int> fastest_first(slots.begin(), slots.end());
  std::ranges::stable_sort(fastest_first, {}, [&](int slot) { return -throughput_bound.of(slot); });
  for (std::size_t count = 2; count <= fastest_first.size(); ++count) {
    std::vector<int> fastest(fastest_first.begin(),
                             fastest_first.begin() + static_cast<std::ptrdiff_t>(count));
    std::ranges::sort(fastest);
    auto whole = whole_on(std::move(fastest), table, estimate);
    if (!whole) continue;
    const auto [best, is_first] = data_parallel_.try_emplace(count, *whole);
    if (!is_first && is_shorter(*whole, best->second)) best->second = *std::move(whole);
  }
}

std::vector<ShapedCandidate> WholeModelPlacements::data_parallel() const {
  std::vector<ShapedCandidate> all;
  for (const auto& [count, whole] : data_parallel_) all.push_back(whole);
  return all;
}

std::vector<ShapedCandidate> WholeModelPlacements::best() const {
  std::vector<ShapedCandidate> best;
  if (single_) best.push_back(*single_);
  const std::vector<ShapedCandidate> several = data_parallel();
  const auto shortest = std::ranges::min_element(several, is_shorter);
  if (shortest != several.end()) best.push_back(*shortest);
  return best;
}

}  // namespace motley
