#include "partitioner/cost/stage_reach.h"

#include <algorithm>
#include <limits>

#include "partitioner/cost/at.h"

namespace motley {
namespace {

// A lower bound of all boundaries, in floats and in exact bytes.
BoundarySize smallest_boundary(const StageTable& table) {
  if (table.layer_count() == 1) return {};
  BoundarySize smallest = table.cost().boundary(0, table.shape().micro_batch);
  for (int l = 1; l + 1 < table.layer_count(); ++l) {
    const BoundarySize size = table.cost().boundary(l, table.shape().micro_batch);
    smallest.floats = std::min(smallest.floats, size.floats);
    smallest.exact_bytes = std::min(smallest.exact_bytes, size.exact_bytes);
  }
  return smallest;
}

}  // namespace

StageReach::StageReach(const StepEstimate& estimate,
                       const ThroughputBound& pace,
                       const std::vector<std::vector<int>>& classes)
    : estimate_(estimate), throughput_(pace), classes_(classes) {
  const StageTable& table = estimate.table();
  const CostModel& cost = table.cost();
  const std::vector<std::string>& codecs = estimate.space().codecs;
  const BoundarySize size = smallest_boundary(table);
  boundary_bytes_ = size.bytes();
  for (int a = 0; a < class_count(); ++a) {
    const int slot = slot_of(a);
    double before_s = std::numeric_limits<double>::infinity();
    double behind_s = before_s;
    double bytes = before_s;
    double back_bytes = before_s;
    for (const std::string& codec : codecs) {
      before_s = std::min(before_s, cost.boundary_before_s(slot, size, codec));
      behind_s = std::min(behind_s, cost.boundary_behind_s(slot, size, codec));
      bytes = std::min(bytes, cost.frame_bytes(slot, size, codec));
      back_bytes = std::min(back_bytes, cost.frame_bytes(slot, size.gradient(), codec));
    }
    before_s_.push_back(before_s);
    behind_s_.push_back(behind_s);
    for (int b = 0; b < class_count(); ++b) {
      // Two slots of one class are different slots.
      const int other = a == b ? members(b).back() : slot_of(b);
      const double load_s = std::max(bytes / cost.link(slot, other).bandwidth_bytes_per_s,
                                     back_bytes / cost.link(other, slot).bandwidth_bytes_per_s);
      load_s_.push_back(slot == other ? 0 : load_s);
    }
  }
}

double StageReach::busy_s(int slot_class, int first, int last, bool recompute) const {
  const StageTable& table = estimate_.table();
  const int slot = slot_of(slot_class);
  double sum_s = table.pass_s(slot, first, last, recompute) +
                 table.update_s(slot, first, last) / table.shape().micro_batches;
  if (first > 0) sum_s += behind_s_[at(slot_class)];
  if (last < table.layer_count()) sum_s += before_s_[at(slot_class)];
  return sum_s;
}

StageReach::InTime StageReach::in_time(int slot_class, bool recompute) const {
  const int layers = estimate_.table().layer_count();
  InTime result{std::vector<int>(at(layers) + 1, 0), std::vector<bool>(at(layers) + 1, false)};
  int first = layers;
  for (int last = layers; last >= 1; --last) {
    first = std::min(first, last);
    while (first > 1 && busy_s(slot_class, first - 1, last, recompute) <= period_s_) --first;
    result.inner_first[at(last)] = first;
    result.from_start[at(last)] = busy_s(slot_class, 0, last, recompute) <= period_s_;
  }
  return result;
}

void StageReach::set_period(double period_s) {
  period_s_ = period_s;
  once_.clear();
  twice_.clear();
  capacity_.clear();
  // A model that just fits must not fail because of rounding.
  constexpr double kRounding = 1e-12;
  slack_ = -throughput_.weight() * (1 - kRounding);
  for (int c = 0; c < class_count(); ++c) {
    const InTime& once = once_.emplace_back(in_time(c, false));
    twice_.push_back(in_time(c, true));
    double capacity = 0;
    for (int last = estimate_.table().layer_count(); last >= 1; --last) {
      const int first = once.from_start[at(last)] ? 0 : once.inner_first[at(last)];
      capacity =
          std::max(capacity, throughput_.weight_before(last) - throughput_.weight_before(first));
    }
    capacity_.push_back(capacity);
    slack_ += capacity * static_cast<double>(members(c).size());
  }
}

bool StageReach::fits(int slot, int first, int last, int depth, bool recompute) const {
  const StageTable& table = estimate_.table();
  if (!estimate_.allows({&slot, 1}, first, last)) return false;
  CostModel::MemoryParts parts = table.memory_parts(slot, first, last);
  const int sides = (first > 0 ? 1 : 0) + (last < table.layer_count() ? 1 : 0);
  parts.boundary_bytes = sides * boundary_bytes_;
  return parts.total(table.shape().in_flight(depth), recompute) <=
         table.cost().slots()[at(slot)].memory_bytes;
}

const StageReach::Fitting& StageReach::fitting(int slot_class,
                                               int depth,
                                               int last,
                                               bool recompute) const {
  const std::size_t lasts = at(estimate_.table().layer_count()) + 1;
  const std::size_t depths = at(estimate_.table().slot_count()) + 1;
  if (fittings_.empty()) fittings_.resize(classes_.size() * depths * lasts * 2);
  Fitting& known = fittings_[((at(slot_class) * depths + at(depth)) * lasts + at(last)) * 2 +
                             (recompute ? 1U : 0U)];
  if (known.inner_first != kNotAsked) return known;
  const int slot = slot_of(slot_class);
  known.from_start = fits(slot, 0, last, depth, recompute);
  int fails = 0;  // checked above
  int holds = last;
  while (holds - fails > 1) {
    const int middle = fails + (holds - fails) / 2;
    (fits(slot, middle, last, depth, recompute) ? holds : fails) = middle;
  }
  known.inner_first = holds;
  return known;
}

int StageReach::first(
    const InTime& in_time, int slot_class, int depth, int last, bool recompute) const {
  const Fitting& fitting = this->fitting(slot_class, depth, last, recompute);
  if (in_time.from_start[at(last)] && fitting.from_start) return 0;
  return std::max(in_time.inner_first[at(last)], fitting.inner_first);
}

int StageReach::first(int slot_class, int depth, int last) const {
  const Recompute rule = estimate_.space().recompute;
  const InTime& once = once_[at(slot_class)];
  int best = last;
  if (rule != Recompute::kAlways) {
    best = first(once, slot_class, depth, last, false);
    // If memory is not the limit, recomputing only takes longer.
    const bool memory_binds =
        best > 0 && (best > once.inner_first[at(last)] || once.from_start[at(last)]);
    if (!memory_binds || rule == Recompute::kNever) return best;
  }
  return std::min(best, first(twice_[at(slot_class)], slot_class, depth, last, true));
}

int StageReach::class_of(int slot) const {
  const auto holds = [&](const std::vector<int>& members) {
    return std::ranges::find(members, slot) != members.end();
  };
  return static_cast<int>(std::ranges::find_if(classes_, holds) - classes_.begin());
}

double StageReach::least_period_s(const std::vector<int>& slots,
                                  const std::vector<int>& first_layers) const {
  const Recompute rule = estimate_.space().recompute;
  double period_s = 0;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const int slot_class = class_of(slots[i]);
    const int depth = static_cast<int>(slots.size() - i);
    const int last = i + 1 < slots.size() ? first_layers[i + 1] : estimate_.table().layer_count();
    double least_s = std::numeric_limits<double>::infinity();
    for (const bool recompute : {false, true}) {
      if (rule == (recompute ? Recompute::kNever : Recompute::kAlways)) continue;
      if (!fits(slots[i], first_layers[i], last, depth, recompute)) continue;
      least_s = std::min(least_s, busy_s(slot_class, first_layers[i], last, recompute));
    }
    period_s = std::max(period_s, least_s);
    if (i == 0) continue;
    const std::size_t before = at(class_of(slots[i - 1]));
    period_s = std::max(period_s, load_s_[before * classes_.size() + at(slot_class)]);
  }
  return period_s;
}

}  // namespace motley
