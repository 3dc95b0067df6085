#include "partitioner/cost/step_estimate.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "partitioner/cost/at.h"
#include "plan/assign_micro_batches.h"

namespace motley {
namespace {

// Times that differ only by rounding are equal.
constexpr double kSameTime = 1e-12;

}  // namespace

bool is_simpler(const Candidate& a, const Candidate& b) {
  const auto slots = [](const Candidate& c) {
    std::size_t count = 0;
    for (const StageChoice& stage : c.stages) count += stage.slots.size();
    return count;
  };
  const auto key = [](const StageChoice& s) {
    return std::tie(s.slots, s.first_layer, s.recompute, s.codec);
  };
  if (a.stages.size() != b.stages.size()) return a.stages.size() < b.stages.size();
  if (slots(a) != slots(b)) return slots(a) < slots(b);
  return std::lexicographical_compare(
      a.stages.begin(), a.stages.end(), b.stages.begin(), b.stages.end(),
      [&](const StageChoice& x, const StageChoice& y) { return key(x) < key(y); });
}

StepEstimate::StepEstimate(const StageTable& table, const SearchSpace& space)
    : table_(table), space_(space), prices_(table, space) {
  for (int l = 0; l < table.layer_count() && !space.may_hold.empty(); ++l) {
    const auto may = [&](const std::vector<bool>& may_hold) { return may_hold[at(l)]; };
    if (!std::ranges::all_of(space.may_hold, may)) pinned_layers_.push_back(l);
  }
}

bool StepEstimate::allows(std::span<const int> slots, int first, int last) const {
  const auto usable = [&](int slot) { return space_.usable.empty() || space_.usable[at(slot)]; };
  if (!std::ranges::all_of(slots, usable)) return false;
  for (auto l = std::ranges::lower_bound(pinned_layers_, first);
       l != pinned_layers_.end() && *l < last; ++l) {
    const auto may = [&](int slot) { return space_.may_hold[at(slot)][at(*l)]; };
    if (std::ranges::none_of(slots, may)) return false;
  }
  return true;
}

// Assigns whole micro-batches so that the slot that finishes last finishes as early as possible:
// each slot's share of the total speed rounded down, and the rest one by one to the slot that would
// finish first.
std::vector<int> StepEstimate::split_batch(std::span<const int> slots,
                                           int first,
                                           int last,
                                           bool recompute) const {
  const int m = table_.shape().micro_batches;
  if (slots.size() == 1) return {m};
  std::vector<double> pass_s;
  double speed = 0;
  for (const int slot : slots) {
    pass_s.push_back(table_.pass_s(slot, first, last, recompute));
    // Work without duration can be assigned arbitrarily.
    if (pass_s.back() <= 0) pass_s.back() = 1e-12;
    speed += 1 / pass_s.back();
  }
  std::vector<int> batch_split;
  int left = m;
  for (const double s : pass_s) {
    batch_split.push_back(static_cast<int>(m / (s * speed)));
    left -= batch_split.back();
  }
  for (; left > 0; --left) {
    std::size_t next = 0;
    for (std::size_t i = 1; i < batch_split.size(); ++i) {
      const double next_s = (batch_split[next] + 1) * pass_s[next];
      if ((batch_split[i] + 1) * pass_s[i] < next_s * (1 - kSameTime)) next = i;
    }
    ++batch_split[next];
  }
  return batch_split;
}

std::optional<StageFit> StepEstimate::split_fit(std::span<const int> slots,
                                                int first,
                                                int last,
                                                bool recompute) const {
  if (!may_recompute(recompute) || !allows(slots, first, last)) return std::nullopt;
  StageFit fit{split_batch(slots, first, last, recompute), recompute};
  if (std::ranges::any_of(fit.batch_split, [](int share) { return share < 1; }))
    return std::nullopt;
  return fit;
}

bool StepEstimate::fits(
    std::span<const int> slots, const StageFit& fit, int first, int last, int in_flight) const {
  const auto fit_with = [&](const auto& own) {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const std::int64_t bytes = table_.memory_bytes(slots[i], first, last, own(i), fit.recompute) +
                                 table_.cost().encoder_bytes(slots, slots[i], first, last);
      if (bytes > table_.cost().slots()[at(slots[i])].memory_bytes) return false;
    }
    return true;
  };
  // Usually there is memory for more than a replica can have.
  if (fit_with([&](std::size_t i) { return std::min(fit.batch_split[i], in_flight); })) return true;
  if (slots.size() == 1) return false;
  const std::vector<int> own =
      max_in_window(assign_micro_batches(fit.batch_split), slots.size(), in_flight);
  return fit_with([&](std::size_t i) { return own[i]; });
}

std::optional<StageFit> StepEstimate::fit(std::span<const int> slots,
                                          int first,
                                          int last,
                                          int in_flight) const {
  for (const bool recompute : {false, true}) {
    auto found = split_fit(slots, first, last, recompute);
    if (found && fits(slots, *found, first, last, in_flight)) return found;
  }
  return std::nullopt;
}

StageWork StepEstimate::work(std::span<const int> slots,
                             const StageFit& fit,
                             int first,
                             int last) const {
  const double m = table_.shape().micro_batches;
  const CostModel& cost = table_.cost();
  const AllreduceTime sum =
      cost.allreduce_time(slots, cost.sizes().reduced_parameters(first, last));
  const int pieces = cost.sizes().allreduce_pieces(first, last);
  StageWork work{{}, first, last};
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const int slot = slots[i];
    const double left_s = sum.left_s(last_backward_s(slot, first, last), pieces);
    work.slots.push_back({slot, fit.batch_split[i] / m,
                          table_.pass_s(slot, first, last, fit.recompute),
                          (table_.update_s(slot, first, last) + left_s) / m});
  }
  return work;
}

double StepEstimate::last_backward_s(int slot, int first, int last) const {
  if (table_.shape().splits_backward()) return table_.backward_weight_s(slot, first, last);
  return table_.pass_s(slot, first, last, /*recompute=*/false) -
         table_.forward_s(slot, first, last);
}

StageTime StepEstimate::time(const StageWork& work, int codec_before, int codec_behind) const {
  StageTime time;
  for (const SlotWork& slot : work.slots) {
    double pass_s = slot.pass_s;
    if (work.first > 0) pass_s += prices_.of(slot.slot, work.first - 1, codec_before).behind_s;
    if (work.last < table_.layer_count()) {
      pass_s += prices_.of(slot.slot, work.last - 1, codec_behind).before_s;
    }
    time.work_s += slot.share * pass_s;
    time.busy_s = std::max(time.busy_s, slot.share * pass_s + slot.end_s);
  }
  return time;
}

StageTransfer StepEstimate::stage_transfer(std::span<const int> from,
                                           std::span<const int> to,
                                           int boundary,
                                           int codec) const {
  const CostModel& cost = table_.cost();
  StageTransfer stage_transfer;
  for (const int a : from) {
    const BoundaryPrice& price_a = prices_.of(a, boundary, codec);
    for (const int b : to) {
      const BoundaryPrice& price_b = prices_.of(b, boundary, codec);
      const auto take = [&](const LinkSpeed& speed, double bytes, double overlapped_s) {
        const double load_s = bytes / speed.bandwidth_bytes_per_s;
        stage_transfer.load_s = std::max(stage_transfer.load_s, load_s);
        stage_transfer.transfer_s =
            std::max(stage_transfer.transfer_s, speed.latency_s + load_s + overlapped_s);
        return load_s;
      };
      const double there_s =
          take(cost.link(a, b), price_a.activation.bytes,
               price_a.activation.overlapped_send_s + price_b.activation.overlapped_receive_s);
      const double back_s =
          take(cost.link(b, a), price_a.gradient.bytes,
               price_b.gradient.overlapped_send_s + price_a.gradient.overlapped_receive_s);
      // An activation there and a gradient back, for each micro-batch.
      if (cost.is_half_duplex(a, b))
        stage_transfer.load_s = std::max(stage_transfer.load_s, there_s + back_s);
      stage_transfer.remote = stage_transfer.remote || !cost.same_machine(a, b);
    }
  }
  return stage_transfer;
}

// With w micro-batches in flight a stage finishes w of them per round trip to the end and back, so
// m of them take at least (m / w) S. As a period that is S (m - w) / (w (m - 1)).
double StepEstimate::round_trip_share(int in_flight) const {
  const double m = table_.shape().micro_batches;
  const double w = in_flight;
  return m > w ? (m - w) / (w * (m - 1)) : 0;
}

double StepEstimate::tied_s(std::span<const int> first_slots,
                            std::span<const int> last_slots) const {
  const std::int64_t parameters = table_.cost().sizes().tied_parameters();
  if (parameters == 0) return 0;
  std::set<int> slots(first_slots.begin(), first_slots.end());
  slots.insert(last_slots.begin(), last_slots.end());
  return table_.cost()
      .allreduce_time(std::vector<int>(slots.begin(), slots.end()), parameters)
      .all_s;
}

bool StepEstimate::uses_required_slots(const Candidate& candidate) const {
  return std::all_of(space_.must_use.begin(), space_.must_use.end(), [&](const auto& wanted) {
    return std::any_of(candidate.stages.begin(), candidate.stages.end(), [&](const auto& stage) {
      return std::any_of(stage.slots.begin(), stage.slots.end(), [&](int slot) {
        return std::find(wanted.begin(), wanted.end(), slot) != wanted.end();
      });
    });
  });
}

bool StepEstimate::obeys_pins(const Candidate& candidate) const {
  for (std::size_t i = 0; i < candidate.stages.size(); ++i) {
    const bool is_last = i + 1 == candidate.stages.size();
    const int last = is_last ? table_.layer_count() : candidate.stages[i + 1].first_layer;
    if (!allows(candidate.stages[i].slots, candidate.stages[i].first_layer, last)) return false;
  }
  return uses_required_slots(candidate);
}

bool StepEstimate::rate(Candidate& candidate) const {
  return uses_required_slots(candidate) &&
         rate(candidate, [&](const StageChoice& stage, int last, int in_flight) {
           return fit(stage.slots, stage.first_layer, last, in_flight);
         });
}

bool StepEstimate::rate_with_split(Candidate& candidate) const {
  return rate(candidate, [&](const StageChoice& stage, int last, int in_flight) {
    for (const bool recompute : {false, true}) {
      const StageFit given{stage.batch_split, recompute};
      if (!may_recompute(recompute)) continue;
      if (fits(stage.slots, given, stage.first_layer, last, in_flight)) return std::optional(given);
    }
    return std::optional<StageFit>();
  });
}

template <typename FitOf>
bool StepEstimate::rate(Candidate& candidate, const FitOf& fit_of) const {
  const int stages = static_cast<int>(candidate.stages.size());
  const std::vector<int> in_flight = in_flight_of(candidate.stages, table_.shape());
  Tail tail;
  for (int i = stages - 1; i >= 0; --i) {
    StageChoice& stage = candidate.stages[at(i)];
    const bool is_last = i + 1 == stages;
    const int last = is_last ? table_.layer_count() : candidate.stages[at(i + 1)].first_layer;
    const auto found = fit_of(stage, last, in_flight[at(i)]);
    if (!found) return false;
    stage.batch_split = found->batch_split;
    stage.recompute = found->recompute;
    const int codec_before = i > 0 ? candidate.stages[at(i - 1)].codec : 0;
    const StageTime taken =
        time(work(stage.slots, *found, stage.first_layer, last), codec_before, stage.codec);
    tail = is_last ? last_stage(taken)
                   : prepend(taken,
                             stage_transfer(stage.slots, candidate.stages[at(i + 1)].slots,
                                            last - 1, stage.codec),
                             round_trip_share(in_flight[at(i)]), tail);
  }
  candidate.period_s = tail.period_s;
  candidate.estimate_s = step_s(tail);
  candidate.estimate_s += tied_s(candidate.stages.front().slots, candidate.stages.back().slots);
  return true;
}

std::vector<int> in_flight_of(const std::vector<StageChoice>& stages, const StepShape& shape) {
  std::vector<int> in_flight(stages.size());
  int under_way = 0;
  for (std::size_t i = stages.size(); i-- > 0;) {
    const int replicas = static_cast<int>(stages[i].slots.size());
    in_flight[i] = shape.in_flight(replicas, under_way);
    under_way = shape.under_way(replicas, under_way);
  }
  return in_flight;
}

}  // namespace motley
