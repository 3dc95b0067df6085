#include "partitioner/search/exact_search.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "partitioner/cost/at.h"
#include "partitioner/cost/pace.h"
#include "partitioner/cost/step_estimate.h"
#include "partitioner/search/best_candidates.h"
#include "partitioner/search/slot_classes.h"

namespace motley {
namespace {

constexpr int kNoSuffix = -1;

// A tail with what it takes to rebuild its stages.
struct Partial {
  Tail tail;
  int first_layer = 0;
  int codec_before = 0;
  int next = kNoSuffix;  // the Partial behind it
};

// [first layer x codec before it] the partials that no other beats, as indices.
using Frontier = std::vector<std::vector<int>>;

// The stages of one order from one of them to the end.
struct Suffix {
  std::vector<int> slots;  // of the front stage
  Frontier frontier;
};

class ExactSearch {
 public:
  ExactSearch(const StageTable& table, const SearchSpace& space, std::size_t keep)
      : table_(table),
        space_(space),
        estimate_(table, space),
        pace_(table, space),
        classes_(slot_classes(table.cost(), space)),
        best_(keep) {
    for (const std::vector<int>& members : classes_) {
      slots_.insert(slots_.end(), members.begin(), members.end());
    }
    MOTLEY_CHECK(slots_.size() <= kExactSlotsMax, "{} slots", slots_.size());
    stages_max_ = std::min({space.stages == 0 ? static_cast<int>(slots_.size()) : space.stages,
                            static_cast<int>(slots_.size()), table.layer_count()});
    // Fast slots first: their candidates bound the others early.
    std::stable_sort(slots_.begin(), slots_.end(),
                     [&](int a, int b) { return pace_.of(a) > pace_.of(b); });
  }

  std::vector<Candidate> run() {
    descend();
    return best_.list();
  }

 private:
  using Mask = unsigned;  // of positions in slots_

  // Puts every possible stage in front of those in suffixes_.
  void descend() {
    if (static_cast<int>(suffixes_.size()) == stages_max_) return;
    const Mask all = (Mask{1} << slots_.size()) - 1;
    for (Mask group = 1; group <= all; ++group) {
      if ((group & used_) != 0 || !is_first_of_its_like(group)) continue;
      if (!space_.replicas && (group & (group - 1)) != 0) continue;
      const std::size_t mark = partials_.size();
      used_ |= group;
      Suffix suffix{members_of(group), Frontier(at(table_.layer_count()) * space_.codecs.size())};
      add_stage(suffix);
      suffixes_.push_back(std::move(suffix));
      offer_complete();
      descend();
      suffixes_.pop_back();
      used_ &= ~group;
      partials_.resize(mark);
    }
  }

  // Of slots that differ in nothing, always the first unused ones are taken.
  bool is_first_of_its_like(Mask group) const {
    for (const std::vector<int>& members : classes_) {
      bool skipped = false;
      for (std::size_t i = 0; i < slots_.size(); ++i) {
        const Mask bit = Mask{1} << i;
        if (std::find(members.begin(), members.end(), slots_[i]) == members.end()) continue;
        if ((group & bit) != 0 && skipped) return false;
        if (((group | used_) & bit) == 0) skipped = true;
      }
    }
    return true;
  }

  std::vector<int> members_of(Mask group) const {
    std::vector<int> members;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if ((group >> i & 1U) != 0) members.push_back(slots_[i]);
    }
    std::sort(members.begin(), members.end());
    return members;
  }

  void add_stage(Suffix& suffix) {
    const int layers = table_.layer_count();
    const int depth = static_cast<int>(suffixes_.size()) + 1;
    set_bounds();
    const int codecs = static_cast<int>(space_.codecs.size());
    const bool is_last = suffixes_.empty();
    for (int last = is_last ? layers : 1; last <= (is_last ? layers : layers - 1); ++last) {
      if (!is_last && !has_partials(suffixes_.back(), last)) continue;
      for (int first = last - 1; first >= 0; --first) {
        const auto fit = estimate_.fit(suffix.slots, first, last, depth);
        // A longer stage needs more memory and holds more pinned layers, but may deal out better.
        if (!fit) continue;
        for (int before = 0; before < (first == 0 ? 1 : codecs); ++before) {
          if (is_last) {
            insert(
                {estimate_.last_stage(suffix.slots, *fit, first, before), first, before, kNoSuffix},
                suffix.frontier);
          } else {
            prepend_to_all(suffix, *fit, first, last, before, depth);
          }
        }
      }
    }
  }

  bool has_partials(const Suffix& suffix, int first_layer) const {
    const std::size_t codecs = space_.codecs.size();
    for (std::size_t c = 0; c < codecs; ++c) {
      if (!suffix.frontier[at(first_layer) * codecs + c].empty()) return true;
    }
    return false;
  }

  void prepend_to_all(
      Suffix& suffix, const StageFit& fit, int first, int last, int before, int depth) {
    const Suffix& behind = suffixes_.back();
    const std::size_t codecs = space_.codecs.size();
    for (std::size_t c = 0; c < codecs; ++c) {
      const Front front{behind.slots, static_cast<int>(c)};
      for (const int next : behind.frontier[at(last) * codecs + c]) {
        insert({estimate_.prepend(suffix.slots, fit, first, last, before, depth,
                                  partials_[at(next)].tail, front),
                first, before, next},
               suffix.frontier);
      }
    }
  }

  // The paces of the slots that are still free.
  void set_bounds() {
    free_pace_ = 0;
    best_free_pace_ = 0;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if ((used_ >> i & 1U) != 0) continue;
      free_pace_ += pace_.of(slots_[i]);
      best_free_pace_ = std::max(best_free_pace_, pace_.of(slots_[i]));
    }
  }

  // No pipeline that ends in the partial takes less.
  double bound_s(const Partial& partial) const {
    const double weight = pace_.weight_before(partial.first_layer);
    if (weight <= 0) return estimate_.step_s(partial.tail);
    if (free_pace_ <= 0) return std::numeric_limits<double>::infinity();
    Tail tail = partial.tail;
    tail.sum_s += weight / best_free_pace_;
    tail.period_s = std::max(tail.period_s, weight / free_pace_);
    return estimate_.step_s(tail);
  }

  void insert(const Partial& partial, Frontier& frontier) {
    // Rounding must not drop what equals the worst kept candidate.
    constexpr double kRounding = 1e-12;
    if (bound_s(partial) * (1 - kRounding) > best_.limit_s()) return;
    std::vector<int>& rivals =
        frontier[at(partial.first_layer) * space_.codecs.size() + at(partial.codec_before)];
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
  }

  void offer_complete() {
    const int stages = static_cast<int>(suffixes_.size());
    if (space_.stages != 0 && stages != space_.stages) return;
    for (const int whole : suffixes_.back().frontier[0]) {
      Candidate candidate;
      int p = whole;
      for (int i = stages - 1; i >= 0; --i) {
        const Partial& partial = partials_[at(p)];
        if (!candidate.stages.empty()) candidate.stages.back().codec = partial.codec_before;
        candidate.stages.push_back({suffixes_[at(i)].slots, {}, partial.first_layer, false, 0});
        p = partial.next;
      }
      if (estimate_.rate(candidate)) best_.offer(std::move(candidate));
    }
  }

  const StageTable& table_;
  const SearchSpace& space_;
  StepEstimate estimate_;
  Pace pace_;
  std::vector<std::vector<int>> classes_;
  BestCandidates best_;
  std::vector<int> slots_;  // usable, fastest first
  int stages_max_ = 0;

  // Of the order under way:
  Mask used_ = 0;
  std::vector<Suffix> suffixes_;  // last stage first
  std::vector<Partial> partials_;
  double free_pace_ = 0;
  double best_free_pace_ = 0;
};

}  // namespace

std::vector<Candidate> search_exactly(const StageTable& table,
                                      const SearchSpace& space,
                                      std::size_t keep) {
  return ExactSearch(table, space, keep).run();
}

}  // namespace motley
