#include "partitioner/stage_reach.h"

#include <algorithm>
#include <limits>

namespace motley {
namespace {

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

}  // namespace

StageReach::StageReach(const StepEstimate& estimate,
                       const Pace& pace,
                       const std::vector<std::vector<int>>& classes)
    : estimate_(estimate), pace_(pace), classes_(classes) {
  const StageTable& table = estimate.table();
  const CostModel& cost = table.cost();
  const std::vector<std::string>& codecs = estimate.space().codecs;
  double floats = std::numeric_limits<double>::infinity();
  for (int l = 0; l + 1 < table.layer_count(); ++l) {
    floats = std::min(floats, cost.boundary_floats(l, table.shape().micro_batch));
  }
  if (table.layer_count() == 1) floats = 0;
  for (int a = 0; a < class_count(); ++a) {
    const int slot = slot_of(a);
    double least_s = std::numeric_limits<double>::infinity();
    double least_bytes = std::numeric_limits<double>::infinity();
    for (const std::string& codec : codecs) {
      least_s = std::min(least_s, cost.encode_s(slot, floats, codec) +
                                      cost.decode_s(slot, floats, codec) + 2 * cost.message_s(slot));
      least_bytes = std::min(least_bytes, cost.wire_bytes(slot, floats, codec));
    }
    crossing_s_.push_back(least_s);
    for (int b = 0; b < class_count(); ++b) {
      // Two of one class are two different slots.
      const int other = a == b ? members(b).back() : slot_of(b);
      const double slowest = std::min(cost.link(slot, other).bandwidth_bytes_per_s,
                                      cost.link(other, slot).bandwidth_bytes_per_s);
      load_s_.push_back(slot == other ? 0 : least_bytes / slowest);
    }
  }
}

bool StageReach::is_busy_at_most(int slot_class, int first, int last, bool recompute) const {
  const StageTable& table = estimate_.table();
  const int slot = slot_of(slot_class);
  const double crossing_s = crossing_s_[at(slot_class)];
  double busy_s = table.pass_s(slot, first, last, recompute) +
                  table.update_s(slot, first, last) / table.shape().micro_batches;
  if (first > 0) busy_s += crossing_s;
  if (last < table.layer_count()) busy_s += crossing_s;
  return busy_s <= period_s_;
}

void StageReach::set_period(double period_s) {
  period_s_ = period_s;
  const int layers = estimate_.table().layer_count();
  busy_first_.assign(at(class_count()), {});
  recomputed_first_.assign(at(class_count()), {});
  capacity_.assign(at(class_count()), 0);
  total_capacity_ = 0;
  for (int c = 0; c < class_count(); ++c) {
    for (const bool recompute : {false, true}) {
      std::vector<int>& firsts = recompute ? recomputed_first_[at(c)] : busy_first_[at(c)];
      firsts.assign(at(layers) + 1, 0);
      int first = layers;
      for (int last = layers; last >= 1; --last) {
        first = std::min(first, last);
        while (first > 0 && is_busy_at_most(c, first - 1, last, recompute)) --first;
        // The first stage has one boundary less, so it may reach where the step before it fails.
        firsts[at(last)] = is_busy_at_most(c, 0, last, recompute) ? 0 : first;
        if (!recompute) {
          capacity_[at(c)] =
              std::max(capacity_[at(c)], pace_.weight_before(last) -
                                             pace_.weight_before(firsts[at(last)]));
        }
      }
    }
    total_capacity_ += capacity_[at(c)] * static_cast<double>(members(c).size());
  }
}

bool StageReach::fits(int slot, int first, int last, int depth, bool recompute) const {
  const StageTable& table = estimate_.table();
  return estimate_.allows(slot, first, last) &&
         table.fits(slot, first, last, table.shape().in_flight(depth), recompute);
}

int StageReach::first_that_fits(
    int slot, int from, int last, int depth, bool recompute) const {
  if (from == last || fits(slot, from, last, depth, recompute)) return from;
  int fails = from;
  int holds = last;  // nothing always fits
  while (holds - fails > 1) {
    const int middle = fails + (holds - fails) / 2;
    (fits(slot, middle, last, depth, recompute) ? holds : fails) = middle;
  }
  return holds;
}

int StageReach::first(int slot_class, int depth, int last) const {
  const int slot = slot_of(slot_class);
  const Recompute rule = estimate_.space().recompute;
  int best = last;
  if (rule != Recompute::kAlways) {
    const int in_time = busy_first_[at(slot_class)][at(last)];
    best = first_that_fits(slot, in_time, last, depth, false);
    // Where memory does not bind, recomputing only takes longer.
    if (best == in_time || rule == Recompute::kNever) return best;
  }
  return std::min(best, first_that_fits(slot, recomputed_first_[at(slot_class)][at(last)], last,
                                        depth, true));
}

bool StageReach::carries(int front_class, int behind_class) const {
  return load_s_[at(front_class) * classes_.size() + at(behind_class)] <= period_s_;
}

}  // namespace motley
