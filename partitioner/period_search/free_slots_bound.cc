#include "partitioner/period_search/free_slots_bound.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace motley {

FreeSlotsBound::FreeSlotsBound(const StepEstimate& estimate, const std::vector<int>& free)
    : micro_batches_(estimate.table().shape().micro_batches) {
  const StageTable& table = estimate.table();
  const bool recompute = estimate.space().recompute == Recompute::kAlways;
  // Every tail contains the last layer.
  const int layers = table.layer_count() - 1;
  for (const int slot : free) {
    const double pass_s = layers > 0 ? table.pass_s(slot, 0, layers, recompute) : 0;
    throughputs_.push_back(pass_s > 0 ? 1 / pass_s : 0);
  }
  weight_before_.push_back(0);
  for (int l = 0; l < layers; ++l) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < free.size(); ++i) {
      least = std::min(least, table.pass_s(free[i], l, l + 1, recompute) * throughputs_[i]);
    }
    weight_before_.push_back(weight_before_.back() + least);
  }
  std::sort(throughputs_.begin(), throughputs_.end(), std::greater<>());
  paces_before_.push_back(0);
  for (const double throughput_bound : throughputs_)
    paces_before_.push_back(paces_before_.back() + throughput_bound);
}

double FreeSlotsBound::step_s(const Tail& tail, int first_layer, double transfer_path_s) const {
  const double weight = weight_before_[static_cast<std::size_t>(first_layer)];
  const double known_s = tail.sum_s + transfer_path_s;
  // A slot without measured time gives no bound.
  if (throughputs_.back() <= 0 || weight <= 0) {
    return known_s + (micro_batches_ - 1) * tail.period_s;
  }
  const double period_s = std::max(tail.period_s, weight / paces_before_.back());
  double left = weight;
  double sum_s = 0;
  double least_s = std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k < throughputs_.size() && left > 0; ++k) {
    const double full_s = weight / paces_before_[k + 1];
    if (full_s >= period_s) {
      least_s =
          std::min(least_s, static_cast<double>(k + 1) * full_s + (micro_batches_ - 1) * full_s);
    }
    const double taken = std::min(left, throughputs_[k] * period_s);
    sum_s += taken / throughputs_[k];
    left -= taken;
  }
  return known_s + std::min(least_s, sum_s + (micro_batches_ - 1) * period_s);
}

}  // namespace motley
