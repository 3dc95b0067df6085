#include "partitioner/search/exact_search.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/check.h"
#include "partitioner/cost/step_estimate.h"
#include "partitioner/search/best_candidates.h"
#include "partitioner/search/free_slots_bound.h"
#include "partitioner/search/slot_classes.h"

namespace motley {
namespace {

constexpr int kNone = -1;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

using Mask = unsigned;  // of positions among the usable slots

// A tail with what it takes to rebuild its stages.
struct Partial {
  Tail tail;
  int first_layer = 0;
  int codec_before = 0;
  Mask front = 0;    // slots of the front stage
  int next = kNone;  // the Partial behind it
};

// All tails that use the same slots, have the same stage in front and as many stages, and, where
// the ends of a pipeline exchange a tied gradient, the same stage at the end.
struct State {
  Mask front = 0;
  Mask last = 0;
  int depth = 0;
  std::vector<std::vector<int>> frontier;  // [first layer x codec before it] Partials
};

// What the search asks of a group of slots as a stage, at one depth, worked out when first asked.
class StageWorks {
 public:
  StageWorks(const StepEstimate& estimate, std::vector<int> slots, int depth)
      : estimate_(estimate),
        slots_(std::move(slots)),
        depth_(depth),
        layers_(estimate.table().layer_count()),
        known_(at(layers_ * (layers_ + 1)), kUnknown) {}

  // nullptr where it does not fit.
  const StageWork* of(int first, int last) {
    std::int32_t& known = known_[at(first * (layers_ + 1) + last)];
    if (known == kUnknown) {
      const auto fit = estimate_.fit(slots_, first, last, depth_);
      known = fit ? static_cast<std::int32_t>(works_.size()) : kImpossible;
      if (fit) works_.push_back(estimate_.work(slots_, *fit, first, last));
    }
    return known == kImpossible ? nullptr : &works_[at(known)];
  }

 private:
  static constexpr std::int32_t kUnknown = -1;
  static constexpr std::int32_t kImpossible = -2;

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  const StepEstimate& estimate_;
  std::vector<int> slots_;
  int depth_;
  int layers_;
  std::vector<std::int32_t> known_;  // [first x last]
  std::deque<StageWork> works_;
};

class ExactSearch {
 public:
  ExactSearch(const StageTable& table, const SearchSpace& space, const ExactSearchOptions& options)
      : table_(table),
        space_(space),
        options_(options),
        estimate_(table, space),
        classes_(slot_classes(table.cost(), space)),
        best_(options.keep) {
    for (const std::vector<int>& members : classes_) {
      slots_.insert(slots_.end(), members.begin(), members.end());
    }
    MOTLEY_CHECK(slots_.size() <= kExactSlotsMax, "{} slots", slots_.size());
    stages_max_ = std::min({space.stages == 0 ? static_cast<int>(slots_.size()) : space.stages,
                            static_cast<int>(slots_.size()), table.layer_count()});
    all_ = (Mask{1} << slots_.size()) - 1;
    for (Mask group = 0; group <= all_; ++group) members_.push_back(members_of(group));
    bounds_.resize(members_.size());
    states_.resize(members_.size());
    works_.resize(members_.size() * at(stages_max_ + 1));
    find_least_hops();
  }

  std::vector<Candidate> run() {
    for (const Candidate& known : options_.known) offer(known);
    extend({}, 0);
    // What is put in front of a state uses more slots, so its number is larger.
    for (Mask used = 1; used <= all_; ++used) {
      for (const State& state : states_[used]) {
        extend(state, used);
      }
      states_[used].clear();
    }
    return best_.list();
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  std::vector<int> members_of(Mask group) const {
    std::vector<int> members;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if ((group >> i & 1U) != 0) members.push_back(slots_[i]);
    }
    std::sort(members.begin(), members.end());
    return members;
  }

  // Between any two slots, with the codec and over the boundary that take least.
  void find_least_hops() {
    least_hops_.assign(slots_.size() * slots_.size(), {kInfinite, kInfinite, false});
    for (std::size_t a = 0; a < slots_.size(); ++a) {
      for (std::size_t b = 0; b < slots_.size(); ++b) {
        if (a == b) continue;
        Hop& least = least_hops_[a * slots_.size() + b];
        for (int boundary = 0; boundary + 1 < table_.layer_count(); ++boundary) {
          for (int codec = 0; codec < static_cast<int>(space_.codecs.size()); ++codec) {
            const Hop hop = estimate_.hop({&slots_[a], 1}, {&slots_[b], 1}, boundary, codec);
            least.transfer_s = std::min(least.transfer_s, hop.transfer_s);
            least.load_s = std::min(least.load_s, hop.load_s);
            least.remote = hop.remote;
          }
        }
      }
    }
  }

  // Puts every possible stage in front of the state's tails; the last stage where nothing is used.
  void extend(const State& state, Mask used) {
    if (state.depth == stages_max_) return;
    for (Mask group = 1; group <= all_; ++group) {
      if ((group & used) != 0 || !is_first_of_its_like(group, used)) continue;
      if (!space_.replicas && std::popcount(group) > 1) continue;
      add_stage(state, used, group);
    }
  }

  // Of slots that differ in nothing, always the first unused ones are taken.
  bool is_first_of_its_like(Mask group, Mask used) const {
    std::size_t i = 0;
    for (const std::vector<int>& members : classes_) {
      bool skipped = false;
      for (std::size_t k = 0; k < members.size(); ++k, ++i) {
        const Mask bit = Mask{1} << i;
        if ((group & bit) != 0 && skipped) return false;
        if (((group | used) & bit) == 0) skipped = true;
      }
    }
    return true;
  }

  void add_stage(const State& state, Mask used, Mask group) {
    target_ = nullptr;
    group_ = group;
    used_ = used | group;
    depth_ = state.depth + 1;
    last_group_ = state.depth == 0 ? group : state.last;
    behind_ = state.front;
    set_bounds();
    const int layers = table_.layer_count();
    if (state.depth == 0) {
      for (int first = layers - 1; first >= 0; --first) {
        const StageWork* work = work_of(first, layers);
        if (work == nullptr) continue;
        for (int before = 0; before < codecs_before(first); ++before) {
          insert({StepEstimate::last_stage(estimate_.time(*work, before, 0)), first, before, group,
                  kNone});
        }
      }
      return;
    }
    const double turn =
        estimate_.round_trip_share(depth_, static_cast<int>(members_[group].size()));
    const int codecs = static_cast<int>(space_.codecs.size());
    for (int last = 1; last < layers; ++last) {
      for (int codec = 0; codec < codecs; ++codec) {
        const std::vector<int>& tails = state.frontier[at(last * codecs + codec)];
        if (!tails.empty()) prepend_to(tails, last, codec, turn);
      }
    }
  }

  void prepend_to(const std::vector<int>& tails, int last, int codec, double turn) {
    const Hop hop = estimate_.hop(members_[group_], members_[behind_], last - 1, codec);
    double least_s = kInfinite;
    for (const int next : tails) {
      Tail tail = partials_[at(next)].tail;
      tail.sum_s += 2 * hop.transfer_s;
      least_s = std::min(least_s, estimate_.step_s(tail));
    }
    for (int first = last - 1; first >= 0; --first) {
      const StageWork* work = work_of(first, last);
      // A longer stage needs more memory, but it may deal out better, and hold what is pinned.
      if (work == nullptr) continue;
      for (int before = 0; before < codecs_before(first); ++before) {
        const StageTime time = estimate_.time(*work, before, codec);
        for (const int next : tails) {
          insert({StepEstimate::prepend(time, hop, turn, partials_[at(next)].tail), first, before,
                  group_, next});
        }
      }
      if (least_s + least_work_s(first, last) > limit_s()) return;  // longer stages take longer
    }
  }

  // No deal of the layers to the group adds less to a step.
  double least_work_s(int first, int last) const {
    double least_s = kInfinite;
    for (const int slot : members_[group_]) {
      least_s = std::min(least_s, table_.pass_s(slot, first, last, false));
    }
    return least_s;
  }

  const StageWork* work_of(int first, int last) {
    std::unique_ptr<StageWorks>& works = works_[group_ * at(stages_max_ + 1) + at(depth_)];
    if (!works) works = std::make_unique<StageWorks>(estimate_, members_[group_], depth_);
    return works->of(first, last);
  }

  int codecs_before(int first) const {
    return first == 0 ? 1 : static_cast<int>(space_.codecs.size());
  }

  // What whatever comes in front of the group adds at least.
  void set_bounds() {
    const Mask free = all_ & ~used_;
    bound_ = nullptr;
    least_hop_s_ = least_load_s_ = tied_s_ = kInfinite;
    if (free == 0 || depth_ == stages_max_) return;
    if (!bounds_[free]) bounds_[free].emplace(estimate_, members_[free]);
    bound_ = &*bounds_[free];
    for (std::size_t x = 0; x < slots_.size(); ++x) {
      if ((free >> x & 1U) == 0) continue;
      double hop_s = 0;
      double load_s = 0;
      for (std::size_t a = 0; a < slots_.size(); ++a) {
        if ((group_ >> a & 1U) == 0) continue;
        const Hop& hop = least_hops_[a * slots_.size() + x];
        hop_s = std::max(hop_s, hop.transfer_s);
        load_s = std::max(load_s, hop.load_s);
      }
      least_hop_s_ = std::min(least_hop_s_, hop_s);
      least_load_s_ = std::min(least_load_s_, load_s);
      tied_s_ = std::min(tied_s_, tied_s(Mask{1} << x, last_group_));
    }
  }

  double tied_s(Mask first, Mask last) {
    const auto [known, added] = tied_.try_emplace(first | last, 0);
    if (added) known->second = estimate_.tied_s(members_[first], members_[last]);
    return known->second;
  }

  // No pipeline that ends in the partial takes less.
  double bound_s(const Partial& partial) {
    if (partial.first_layer == 0) {
      return estimate_.step_s(partial.tail) + tied_s(group_, last_group_);
    }
    if (bound_ == nullptr) return kInfinite;
    Tail tail = partial.tail;
    tail.period_s = std::max(tail.period_s, least_load_s_);
    return bound_->step_s(tail, partial.first_layer, 2 * least_hop_s_) + tied_s_;
  }

  double limit_s() const {
    const double best_s =
        best_.list().empty() ? kInfinite : options_.spread * best_.list().front().estimate_s;
    return std::min({best_.limit_s(), options_.ceiling_s, best_s});
  }

  State& target() {
    if (target_ != nullptr) return *target_;
    // What the ends exchange matters only where something is tied.
    const Mask last = table_.cost().sizes().tied_parameters() == 0 ? 0 : last_group_;
    std::deque<State>& states = states_[used_];
    const auto found = std::ranges::find_if(states, [&](const State& state) {
      return state.front == group_ && state.last == last && state.depth == depth_;
    });
    if (found != states.end()) return *(target_ = &*found);
    const std::size_t cells = at(table_.layer_count()) * space_.codecs.size();
    states.push_back({group_, last, depth_, std::vector<std::vector<int>>(cells)});
    return *(target_ = &states.back());
  }

  void insert(const Partial& partial) {
    // Rounding must not drop what equals the worst kept candidate.
    constexpr double kRounding = 1e-12;
    if (bound_s(partial) * (1 - kRounding) > limit_s()) return;
    const std::size_t codecs = space_.codecs.size();
    std::vector<int>& rivals =
        target().frontier[at(partial.first_layer) * codecs + at(partial.codec_before)];
    const auto beats = [](const Tail& a, const Tail& b) {
      return a.sum_s <= b.sum_s && a.period_s <= b.period_s && a.load_s <= b.load_s;
    };
    for (const int rival : rivals) {
      if (beats(partials_[at(rival)].tail, partial.tail)) return;
    }
    std::erase_if(rivals,
                  [&](int rival) { return beats(partial.tail, partials_[at(rival)].tail); });
    rivals.push_back(static_cast<int>(partials_.size()));
    partials_.push_back(partial);
    if (partial.first_layer == 0) offer_whole(partial);
  }

  void offer_whole(const Partial& whole) {
    if (space_.stages != 0 && depth_ != space_.stages) return;
    Candidate candidate;
    for (const Partial* p = &whole;; p = &partials_[at(p->next)]) {
      if (!candidate.stages.empty()) candidate.stages.back().codec = p->codec_before;
      candidate.stages.push_back({members_[p->front], {}, p->first_layer, false, 0});
      if (p->next == kNone) break;
    }
    if (estimate_.rate(candidate)) offer(std::move(candidate));
  }

  void offer(Candidate candidate) {
    if (candidate.estimate_s <= options_.ceiling_s) best_.offer(std::move(candidate));
  }

  const StageTable& table_;
  const SearchSpace& space_;
  const ExactSearchOptions& options_;
  StepEstimate estimate_;
  std::vector<std::vector<int>> classes_;
  BestCandidates best_;
  std::vector<int> slots_;  // usable, like ones side by side
  int stages_max_ = 0;
  Mask all_ = 0;
  std::vector<std::vector<int>> members_;              // [mask] slots, ascending
  std::vector<Hop> least_hops_;                        // [position x position]
  std::vector<std::optional<FreeSlotsBound>> bounds_;  // [mask of free slots]
  std::map<Mask, double> tied_;                        // by the slots at both ends
  std::vector<std::unique_ptr<StageWorks>> works_;     // [mask x depth]
  std::vector<std::deque<State>> states_;              // [mask of used slots]
  std::deque<Partial> partials_;

  // Of the stage being put in front:
  State* target_ = nullptr;
  Mask group_ = 0;
  Mask used_ = 0;  // with the group
  Mask behind_ = 0;
  Mask last_group_ = 0;
  int depth_ = 0;
  const FreeSlotsBound* bound_ = nullptr;  // nullptr: nothing can come in front
  double least_hop_s_ = 0;
  double least_load_s_ = 0;
  double tied_s_ = 0;
};

}  // namespace

std::vector<Candidate> search_exactly(const StageTable& table,
                                      const SearchSpace& space,
                                      const ExactSearchOptions& options) {
  return ExactSearch(table, space, options).run();
}

}  // namespace motley
