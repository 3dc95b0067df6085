#include "partitioner/cost/step_estimate.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "partitioner/cost/at.h"

namespace motley {
namespace {

// Of two times that differ by rounding alone, neither is shorter.
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
    : table_(table), space_(space) {
  for (const std::vector<bool>& may_hold : space.may_hold) {
    std::vector<int>& before = forbidden_before_.emplace_back(1, 0);
    for (const bool may : may_hold) before.push_back(before.back() + (may ? 0 : 1));
  }
}

bool StepEstimate::allows(int slot, int first, int last) const {
  if (!space_.usable.empty() && !space_.usable[at(slot)]) return false;
  return forbidden_before_.empty() ||
         forbidden_before_[at(slot)][at(first)] == forbidden_before_[at(slot)][at(last)];
}

// Whole micro-batches, so that the slot that is last done is done as early as possible: everybody's
// share of the common speed rounded down, and the rest one by one to whoever ends first.
std::vector<int> StepEstimate::deal(std::span<const int> slots,
                                    int first,
                                    int last,
                                    bool recompute) const {
  const int m = table_.shape().micro_batches;
  if (slots.size() == 1) return {m};
  std::vector<double> pass_s;
  double speed = 0;
  for (const int slot : slots) {
    pass_s.push_back(table_.pass_s(slot, first, last, recompute));
    // Work that takes no time can be dealt in any way.
    if (pass_s.back() <= 0) pass_s.back() = 1e-12;
    speed += 1 / pass_s.back();
  }
  std::vector<int> shares;
  int left = m;
  for (const double s : pass_s) {
    shares.push_back(static_cast<int>(m / (s * speed)));
    left -= shares.back();
  }
  for (; left > 0; --left) {
    std::size_t next = 0;
    for (std::size_t i = 1; i < shares.size(); ++i) {
      const double next_s = (shares[next] + 1) * pass_s[next];
      if ((shares[i] + 1) * pass_s[i] < next_s * (1 - kSameTime)) next = i;
    }
    ++shares[next];
  }
  return shares;
}

std::optional<StageFit> StepEstimate::fit(std::span<const int> slots,
                                          int first,
                                          int last,
                                          int depth) const {
  const auto forbids = [&](int slot) { return !allows(slot, first, last); };
  if (std::any_of(slots.begin(), slots.end(), forbids)) return std::nullopt;
  for (const bool recompute : {false, true}) {
    if (recompute ? space_.recompute == Recompute::kNever
                  : space_.recompute == Recompute::kAlways) {
      continue;
    }
    StageFit fit{deal(slots, first, last, recompute), recompute};
    bool fits = true;
    for (std::size_t i = 0; i < slots.size() && fits; ++i) {
      if (fit.shares[i] < 1) return std::nullopt;
      fits = table_.fits(slots[i], first, last, table_.shape().in_flight(depth, fit.shares[i]),
                         recompute);
    }
    if (fits) return fit;
  }
  return std::nullopt;
}

// One activation and one gradient over the boundary, at one of its ends: one is encoded there and
// the other decoded.
double StepEstimate::crossing_s(int slot, int boundary, int codec) const {
  const CostModel& cost = table_.cost();
  const double floats = cost.boundary_floats(boundary, table_.shape().micro_batch);
  return cost.crossing_s(slot, floats, space_.codecs[at(codec)]);
}

StepEstimate::StageTime StepEstimate::stage_time(std::span<const int> slots,
                                                 const StageFit& fit,
                                                 int first,
                                                 int last,
                                                 int codec_before,
                                                 int codec_behind) const {
  const double m = table_.shape().micro_batches;
  const CostModel& cost = table_.cost();
  const double reduce_s = cost.sum_s(slots, cost.sizes().summed_parameters(first, last));
  StageTime time;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const int slot = slots[i];
    double pass_s = table_.pass_s(slot, first, last, fit.recompute);
    if (first > 0) pass_s += crossing_s(slot, first - 1, codec_before);
    if (last < table_.layer_count()) pass_s += crossing_s(slot, last - 1, codec_behind);
    const double share = fit.shares[i] / m;
    time.work_s += share * pass_s;
    time.busy_s =
        std::max(time.busy_s, share * pass_s + (table_.update_s(slot, first, last) + reduce_s) / m);
  }
  return time;
}

StepEstimate::Hop StepEstimate::hop(std::span<const int> from,
                                    std::span<const int> to,
                                    int boundary,
                                    int codec) const {
  const CostModel& cost = table_.cost();
  const double floats = cost.boundary_floats(boundary, table_.shape().micro_batch);
  const std::string& name = space_.codecs[at(codec)];
  Hop hop;
  for (const int a : from) {
    const double bytes = cost.frame_bytes(a, floats, name);
    for (const int b : to) {
      for (const auto& [sender, receiver] : {std::pair(a, b), std::pair(b, a)}) {
        const LinkSpeed speed = cost.link(sender, receiver);
        const double load_s = bytes / speed.bandwidth_bytes_per_s;
        hop.load_s = std::max(hop.load_s, load_s);
        hop.transfer_s =
            std::max(hop.transfer_s,
                     speed.latency_s + load_s + cost.beside_s(sender, receiver, floats, name));
      }
      hop.remote = hop.remote || cost.slots()[at(a)].machine != cost.slots()[at(b)].machine;
    }
  }
  return hop;
}

// With w micro-batches in flight a stage gets through w of them per round trip to the end and back,
// so m of them take at least (m / w) S. As a period that is S (m - w) / (w (m - 1)).
double StepEstimate::round_trip_share(int depth, int replicas) const {
  const double m = table_.shape().micro_batches;
  const double w = std::max(table_.shape().in_flight(depth), replicas);
  return m > w ? (m - w) / (w * (m - 1)) : 0;
}

Tail StepEstimate::last_stage(std::span<const int> slots,
                              const StageFit& fit,
                              int first,
                              int codec_before) const {
  const StageTime time = stage_time(slots, fit, first, table_.layer_count(), codec_before, 0);
  return {time.work_s, time.busy_s, 0};
}

Tail StepEstimate::prepend(std::span<const int> slots,
                           const StageFit& fit,
                           int first,
                           int last,
                           int codec_before,
                           int depth,
                           const Tail& tail,
                           const Front& front) const {
  const StageTime time = stage_time(slots, fit, first, last, codec_before, front.codec);
  const Hop hop = this->hop(slots, front.slots, last - 1, front.codec);
  Tail result;
  result.sum_s = tail.sum_s + time.work_s + 2 * hop.transfer_s;
  result.load_s = hop.remote ? hop.load_s : 0;
  // The device behind has this traffic beside that with the stage behind it.
  const double behind_load_s = hop.remote ? tail.load_s + hop.load_s : hop.load_s;
  const double turn_s = result.sum_s * round_trip_share(depth, static_cast<int>(slots.size()));
  result.period_s = std::max({tail.period_s, time.busy_s, behind_load_s, turn_s});
  return result;
}

double StepEstimate::tied_s(std::span<const int> first_slots,
                            std::span<const int> last_slots) const {
  const std::int64_t parameters = table_.cost().sizes().tied_parameters();
  if (parameters == 0) return 0;
  std::set<int> slots(first_slots.begin(), first_slots.end());
  slots.insert(last_slots.begin(), last_slots.end());
  return table_.cost().sum_s(std::vector<int>(slots.begin(), slots.end()), parameters);
}

bool StepEstimate::uses_all_it_must(const Candidate& candidate) const {
  return std::all_of(space_.must_use.begin(), space_.must_use.end(), [&](const auto& wanted) {
    return std::any_of(candidate.stages.begin(), candidate.stages.end(), [&](const auto& stage) {
      return std::any_of(stage.slots.begin(), stage.slots.end(), [&](int slot) {
        return std::find(wanted.begin(), wanted.end(), slot) != wanted.end();
      });
    });
  });
}

bool StepEstimate::rate(Candidate& candidate) const {
  if (!uses_all_it_must(candidate)) return false;
  const int stages = static_cast<int>(candidate.stages.size());
  Tail tail;
  for (int i = stages - 1; i >= 0; --i) {
    StageChoice& stage = candidate.stages[at(i)];
    const bool is_last = i + 1 == stages;
    const int last = is_last ? table_.layer_count() : candidate.stages[at(i + 1)].first_layer;
    const auto found = fit(stage.slots, stage.first_layer, last, stages - i);
    if (!found) return false;
    stage.shares = found->shares;
    stage.recompute = found->recompute;
    const int codec_before = i > 0 ? candidate.stages[at(i - 1)].codec : 0;
    tail = is_last ? last_stage(stage.slots, *found, stage.first_layer, codec_before)
                   : prepend(stage.slots, *found, stage.first_layer, last, codec_before, stages - i,
                             tail, {candidate.stages[at(i + 1)].slots, stage.codec});
  }
  candidate.period_s = tail.period_s;
  candidate.estimate_s = step_s(tail);
  candidate.estimate_s += tied_s(candidate.stages.front().slots, candidate.stages.back().slots);
  return true;
}

}  // namespace motley
