#include "partitioner/cost/throughput_bound.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

namespace motley {

ThroughputBound::ThroughputBound(const StageTable& table, const SearchSpace& space)
    : weight_before_{0} {
  const int slots = table.slot_count();
  const auto usable = [&](int slot) {
    return space.usable.empty() || space.usable[static_cast<std::size_t>(slot)];
  };
  throughput_.assign(static_cast<std::size_t>(slots), 0);
  for (int l = 0; l < table.layer_count(); ++l) {
    double fastest_s = std::numeric_limits<double>::infinity();
    for (int s = 0; s < slots; ++s) {
      if (usable(s)) fastest_s = std::min(fastest_s, table.pass_s(s, l, l + 1, false));
    }
    weight_before_.push_back(weight_before_.back() + fastest_s);
    for (int s = 0; s < slots; ++s) {
      if (!usable(s)) continue;
      const double time_s = table.pass_s(s, l, l + 1, false);
      double& pace = throughput_[static_cast<std::size_t>(s)];
      if (fastest_s > 0) pace = std::max(pace, fastest_s / time_s);
    }
  }
  for (const double pace : throughput_) {
    if (pace > 0) fastest_first_.push_back(pace);
  }
  std::sort(fastest_first_.begin(), fastest_first_.end(), std::greater<>());
}

double ThroughputBound::fluid_period_s() const {
  const double paces = std::accumulate(fastest_first_.begin(), fastest_first_.end(), 0.0);
  return paces > 0 ? weight() / paces : 0;
}

double ThroughputBound::least_sum_s(double period_s) const {
  double left = weight();
  double sum_s = 0;
  for (const double pace : fastest_first_) {
    const double taken = std::min(left, pace * period_s);
    sum_s += taken / pace;
    left -= taken;
  }
  return sum_s;
}

double ThroughputBound::step_bound_s(double period_min_s, int micro_batches) const {
  const auto step_s = [&](double period_s) {
    return least_sum_s(period_s) + (micro_batches - 1) * period_s;
  };
  // Convex in the period, since the least sum is the value of a linear programme.
  double low_s = std::max(period_min_s, fluid_period_s());
  double high_s = std::max(low_s, fastest_first_.empty() ? 0 : weight() / fastest_first_.front());
  constexpr int kHalvings = 100;
  for (int i = 0; i < kHalvings; ++i) {
    const double a = low_s + (high_s - low_s) / 3;
    const double b = high_s - (high_s - low_s) / 3;
    if (step_s(a) <= step_s(b)) {
      high_s = b;
    } else {
      low_s = a;
    }
  }
  return step_s(low_s);
}

}  // namespace motley
