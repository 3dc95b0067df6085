#include "partitioner/period_search/exact_search.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "base/check.h"
#include "partitioner/cost/at.h"
#include "partitioner/cost/step_estimate.h"
#include "partitioner/period_search/best_candidates.h"
#include "partitioner/period_search/front_bound.h"
#include "partitioner/period_search/slot_classes.h"
#include "partitioner/period_search/stage_works.h"

namespace motley {
namespace {

constexpr int kEndOfModel = -1;
constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// A tail with the data to reconstruct its stages.
struct PartialPipeline {
  Tail tail;
  int first_layer = 0;
  int codec_before = 0;
  SlotMask front = 0;      // slots of the front stage
  int next = kEndOfModel;  // the PartialPipeline behind it
};

// All tails with the same used slots, the same stage in front and equally many micro-batches under
// way. If a number of stages is given, also with the same number of stages; if the ends of a
// pipeline exchange a tied gradient, also with the same last stage.
struct TailState {
  SlotMask front = 0;
  SlotMask last = 0;
  int under_way = 0;
  int depth = 0;                           // 0 if any number of stages is accepted
  std::vector<std::vector<int>> frontier;  // [first layer x codec before it] PartialPipelines
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
    all_ = (SlotMask{1} << slots_.size()) - 1;
    for (SlotMask group = 0; group <= all_; ++group) members_.push_back(members_of(group));
    states_.resize(members_.size());
    works_.resize(members_.size());
    front_bound_.emplace(estimate_, slots_, members_);
  }

  std::vector<Candidate> run() {
    for (const Candidate& known : options_.known) offer(known);
    extend({}, 0);
    // Prepending to a state uses more slots, so the new state's number is larger.
    for (SlotMask used = 1; used <= all_; ++used) {
      for (const TailState& state : states_[used]) {
        extend(state, used);
      }
      states_[used].clear();
    }
    if (options_.tails != nullptr) *options_.tails = tails_;
    return best_.list();
  }

 private:
  std::vector<int> members_of(SlotMask group) const {
    std::vector<int> members;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if ((group >> i & 1U) != 0) members.push_back(slots_[i]);
    }
    std::sort(members.begin(), members.end());
    return members;
  }

  // Prepends every possible stage to the state's tails; the last stage if no slot is used.
  void extend(const TailState& state, SlotMask used) {
    if (space_.stages != 0 && state.depth == stages_max_) return;
    for (SlotMask group = 1; group <= all_; ++group) {
      if ((group & used) != 0 || !is_first_of_its_like(group, used)) continue;
      if (!space_.replicas && std::popcount(group) > 1) continue;
      add_stage(state, used, group);
    }
  }

  // Of identical slots, the first unused ones are always taken.
  bool is_first_of_its_like(SlotMask group, SlotMask used) const {
    std::size_t i = 0;
    for (const std::vector<int>& members : classes_) {
      bool skipped = false;
      for (std::size_t k = 0; k < members.size(); ++k, ++i) {
        const SlotMask bit = SlotMask{1} << i;
        if ((group & bit) != 0 && skipped) return false;
        if (((group | used) & bit) == 0) skipped = true;
      }
    }
    return true;
  }

  void add_stage(const TailState& state, SlotMask used, SlotMask group) {
    target_ = nullptr;
    group_ = group;
    used_ = used | group;
    depth_ = space_.stages == 0 ? 0 : state.depth + 1;
    const bool is_last = state.front == 0;
    const int replicas = std::popcount(group);
    in_flight_ = table_.shape().in_flight(replicas, state.under_way);
    under_way_ = table_.shape().under_way(replicas, state.under_way);
    last_group_ = is_last ? group : state.last;
    behind_ = state.front;
    front_bound_->set_tail(group, last_group_, depth_ == stages_max_ ? 0 : all_ & ~used_);
    const int layers = table_.layer_count();
    if (is_last) {
      for (int first = layers - 1; first >= 0; --first) {
        const StageWork* work = work_of(first, layers);
        if (work == nullptr) continue;
        for (int before = 0; before < codecs_before(first); ++before) {
          insert({StepEstimate::last_stage(estimate_.time(*work, before, 0)), first, before, group,
                  kEndOfModel});
        }
      }
      return;
    }
    const double turn = estimate_.round_trip_share(in_flight_);
    const int codecs = static_cast<int>(space_.codecs.size());
    for (int last = 1; last < layers; ++last) {
      for (int codec = 0; codec < codecs; ++codec) {
        const std::vector<int>& tails = state.frontier[at(last * codecs + codec)];
        if (!tails.empty()) prepend_to(tails, last, codec, turn);
      }
    }
  }

  void prepend_to(const std::vector<int>& tails, int last, int codec, double turn) {
    const StageTransfer stage_transfer =
        estimate_.stage_transfer(members_[group_], members_[behind_], last - 1, codec);
    double least_s = kUnlimited;
    for (const int next : tails) {
      Tail tail = partials_[at(next)].tail;
      tail.sum_s += 2 * stage_transfer.transfer_s;
      least_s = std::min(least_s, estimate_.step_s(tail));
    }
    for (int first = last - 1; first >= 0; --first) {
      const StageWork* work = work_of(first, last);
      // A longer stage needs more memory, but may have a better batch split and hold pinned layers.
      if (work == nullptr) continue;
      for (int before = 0; before < codecs_before(first); ++before) {
        const StageTime time = estimate_.time(*work, before, codec);
        for (const int next : tails) {
          insert({StepEstimate::prepend(time, stage_transfer, turn, partials_[at(next)].tail),
                  first, before, group_, next});
        }
      }
      if (least_s + least_work_s(first, last) > limit_s()) return;  // longer stages take longer
    }
  }

  // A lower bound of the time that any batch split of the layers over the group adds to a step.
  double least_work_s(int first, int last) const {
    double least_s = kUnlimited;
    for (const int slot : members_[group_]) {
      least_s = std::min(least_s, table_.pass_s(slot, first, last, false));
    }
    return least_s;
  }

  const StageWork* work_of(int first, int last) {
    std::unique_ptr<StageWorks>& works = works_[group_];
    if (!works) works = std::make_unique<StageWorks>(estimate_, members_[group_]);
    return works->of(first, last, in_flight_);
  }

  int codecs_before(int first) const {
    return first == 0 ? 1 : static_cast<int>(space_.codecs.size());
  }

  double limit_s() const {
    const double best_s =
        best_.list().empty() ? kUnlimited : options_.spread * best_.list().front().estimate_s;
    return std::min({best_.limit_s(), options_.ceiling_s, best_s});
  }

  TailState& target() {
    if (target_ != nullptr) return *target_;
    // The exchange between the ends matters only if a parameter is tied.
    const SlotMask last = table_.cost().sizes().tied_parameters() == 0 ? 0 : last_group_;
    std::deque<TailState>& states = states_[used_];
    const auto found = std::ranges::find_if(states, [&](const TailState& state) {
      return state.front == group_ && state.last == last && state.under_way == under_way_ &&
             state.depth == depth_;
    });
    if (found != states.end()) return *(target_ = &*found);
    const std::size_t cells = at(table_.layer_count()) * space_.codecs.size();
    states.push_back({group_, last, under_way_, depth_, std::vector<std::vector<int>>(cells)});
    return *(target_ = &states.back());
  }

  void insert(const PartialPipeline& partial) {
    ++tails_;
    // Rounding must not drop a candidate that equals the worst stored one.
    constexpr double kRounding = 1e-12;
    if (front_bound_->step_s(partial.tail, partial.first_layer) * (1 - kRounding) > limit_s())
      return;
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

  void offer_whole(const PartialPipeline& whole) {
    if (space_.stages != 0 && depth_ != space_.stages) return;
    Candidate candidate;
    for (const PartialPipeline* p = &whole;; p = &partials_[at(p->next)]) {
      if (!candidate.stages.empty()) candidate.stages.back().codec = p->codec_before;
      candidate.stages.push_back({members_[p->front], {}, p->first_layer, false, 0});
      if (p->next == kEndOfModel) break;
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
  std::vector<int> slots_;  // usable slots, identical ones adjacent
  int stages_max_ = 0;
  std::int64_t tails_ = 0;  // number of tails examined
  SlotMask all_ = 0;
  std::vector<std::vector<int>> members_;  // [mask] slots, ascending
  std::optional<FrontBound> front_bound_;
  std::vector<std::unique_ptr<StageWorks>> works_;  // [mask]
  std::vector<std::deque<TailState>> states_;       // [mask of used slots]
  std::deque<PartialPipeline> partials_;

  // For the stage that is prepended:
  TailState* target_ = nullptr;
  SlotMask group_ = 0;
  SlotMask used_ = 0;  // including the group
  SlotMask behind_ = 0;
  SlotMask last_group_ = 0;
  int in_flight_ = 0;
  int under_way_ = 0;  // including the stage
  int depth_ = 0;
};

}  // namespace

std::vector<Candidate> search_exactly(const StageTable& table,
                                      const SearchSpace& space,
                                      const ExactSearchOptions& options) {
  return ExactSearch(table, space, options).run();
}

}  // namespace motley
