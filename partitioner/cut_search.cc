#include "partitioner/cut_search.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

namespace motley {
namespace {

constexpr int kNone = -1;

// The stages from first_layer to the end of the model; those behind the first hang on `next`.
struct Partial {
  int first_layer = 0;
  int slot = 0;
  int next = kNone;     // index of the Partial behind it
  double sum_s = 0;     // S so far
  double period_s = 0;  // P so far
};

// Puts stages in front of each other and rates what results.
class Rating {
 public:
  Rating(const StageTable& table, double bytes_per_float)
      : table_(table), bytes_per_float_(bytes_per_float) {}

  Partial last_stage(int slot, int first) const {
    const int layers = table_.layer_count();
    return {first, slot, kNone, table_.work_s(slot, first, layers),
            table_.busy_s(slot, first, layers)};
  }

  // `depth`: of the new stage, counted from the end of the model.
  Partial prepend(int slot, int first, const Partial& behind, int depth) const {
    const CostModel& cost = table_.cost();
    const int boundary = behind.first_layer - 1;
    const int micro_batch = table_.shape().micro_batch;
    const double transfer_s =
        cost.transfer_s(slot, behind.slot, boundary, micro_batch, bytes_per_float_);
    // Latency does not occupy a link.
    const double occupied_s = transfer_s - cost.link(slot, behind.slot).latency_s;
    Partial partial{first, slot, kNone, 0, 0};
    partial.sum_s = behind.sum_s + table_.work_s(slot, first, behind.first_layer) + 2 * transfer_s;
    partial.period_s = std::max({behind.period_s, table_.busy_s(slot, first, behind.first_layer),
                                 occupied_s, partial.sum_s * round_trip_share(depth)});
    return partial;
  }

  // S + (m - 1) P of what is a whole pipeline, or a lower bound for all that begin with it.
  double estimate_s(const Partial& partial) const {
    return partial.sum_s + (table_.shape().micro_batches - 1) * partial.period_s;
  }

  // What the ranks of tied parameters exchange at the end of a step.
  double tied_s(int first_slot, int last_slot) const {
    const CostModel& cost = table_.cost();
    if (cost.tied_bytes() == 0) return 0;
    return cost.message_s(first_slot, last_slot, static_cast<double>(cost.tied_bytes()));
  }

 private:
  // With w micro-batches in flight a stage gets through w of them per round trip to the end and
  // back, so m of them take at least (m / w) S. As a period that is S (m - w) / (w (m - 1)).
  double round_trip_share(int depth) const {
    const double m = table_.shape().micro_batches;
    const double w = table_.shape().in_flight(depth);
    return m > w ? (m - w) / (w * (m - 1)) : 0;
  }

  const StageTable& table_;
  double bytes_per_float_;
};

// The best candidates so far, best first.
class BestCandidates {
 public:
  explicit BestCandidates(std::size_t keep) : keep_(keep) {}

  // What is above this cannot enter.
  double limit_s() const {
    return best_.size() < keep_ ? std::numeric_limits<double>::infinity() : best_.back().estimate_s;
  }

  void offer(Candidate candidate) {
    const auto place = std::lower_bound(best_.begin(), best_.end(), candidate, comes_before);
    if (place != best_.end() && !comes_before(candidate, *place)) return;  // known already
    best_.insert(place, std::move(candidate));
    if (best_.size() > keep_) best_.pop_back();
  }

  std::vector<Candidate> take() { return std::move(best_); }

 private:
  static bool comes_before(const Candidate& a, const Candidate& b) {
    if (a.estimate_s != b.estimate_s) return a.estimate_s < b.estimate_s;
    if (a.slots.size() != b.slots.size()) return a.slots.size() < b.slots.size();
    return std::tie(a.slots, a.first_layers) < std::tie(b.slots, b.first_layers);
  }

  std::size_t keep_;
  std::vector<Candidate> best_;
};

// [first layer] the partials that no other beats in both sum and period, as indices.
using Frontier = std::vector<std::vector<int>>;

class CutSearch {
 public:
  CutSearch(const StageTable& table, double bytes_per_float, int stages, std::size_t keep)
      : table_(table), rating_(table, bytes_per_float), stages_(stages), best_(keep) {
    const auto slots = static_cast<int>(table.cost().slots().size());
    stages_max_ = std::min(stages == 0 ? slots : stages, table.layer_count());
    // Whatever device the layers before k come to, their work takes at least this.
    work_before_s_.assign(static_cast<std::size_t>(table.layer_count()) + 1, 0);
    for (int k = 1; k <= table.layer_count(); ++k) {
      double fastest_s = std::numeric_limits<double>::infinity();
      for (int s = 0; s < slots; ++s) fastest_s = std::min(fastest_s, table.work_s(s, k - 1, k));
      work_before_s_[index(k)] = work_before_s_[index(k - 1)] + fastest_s;
    }
  }

  std::vector<Candidate> run() {
    const auto slots = table_.cost().slots().size();
    if (slots <= kAllOrdersSlotsMax) {
      used_.assign(slots, false);
      search_orders(nullptr, 1);
    } else {
      for (const std::vector<int>& order : likely_orders()) search_order(order);
    }
    return best_.take();
  }

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  // Tries each unused slot in front of the stages in `behind` (none at depth 1), then goes deeper.
  void search_orders(const Frontier* behind, int depth) {
    if (depth > stages_max_) return;
    for (std::size_t s = 0; s < used_.size(); ++s) {
      if (used_[s] || has_unused_twin(s)) continue;
      const std::size_t mark = partials_.size();
      Frontier frontier = empty_frontier();
      add_stage(static_cast<int>(s), behind, depth, frontier);
      offer_complete(frontier, depth);
      used_[s] = true;
      search_orders(&frontier, depth + 1);
      used_[s] = false;
      partials_.resize(mark);
    }
  }

  // Slots that differ in nothing would only repeat the search.
  bool has_unused_twin(std::size_t s) const {
    const auto& slots = table_.cost().slots();
    for (std::size_t t = 0; t < s; ++t) {
      if (!used_[t] && slots[t].machine == slots[s].machine && slots[t].device == slots[s].device) {
        return true;
      }
    }
    return false;
  }

  // All ways to use or leave out the slots of one order.
  void search_order(const std::vector<int>& order) {
    std::vector<Frontier> at_depth(index(stages_max_) + 1, empty_frontier());
    for (auto slot = order.rbegin(); slot != order.rend(); ++slot) {
      // Deepest first, so that a slot is never put in front of itself.
      for (int depth = stages_max_; depth >= 1; --depth) {
        add_stage(*slot, depth == 1 ? nullptr : &at_depth[index(depth - 1)], depth,
                  at_depth[index(depth)]);
      }
    }
    for (int depth = 1; depth <= stages_max_; ++depth)
      offer_complete(at_depth[index(depth)], depth);
    partials_.clear();
  }

  std::vector<std::vector<int>> likely_orders() const {
    std::vector<int> given(table_.cost().slots().size());
    std::iota(given.begin(), given.end(), 0);
    std::vector<int> fastest_first = given;
    const auto whole_s = [&](int slot) { return table_.work_s(slot, 0, table_.layer_count()); };
    std::stable_sort(fastest_first.begin(), fastest_first.end(),
                     [&](int a, int b) { return whole_s(a) < whole_s(b); });
    const std::vector<int> slowest_first(fastest_first.rbegin(), fastest_first.rend());
    return {given, fastest_first, slowest_first};
  }

  Frontier empty_frontier() const { return Frontier(index(table_.layer_count())); }

  void add_stage(int slot, const Frontier* behind, int depth, Frontier& frontier) {
    const int in_flight = table_.shape().in_flight(depth);
    const int layers = table_.layer_count();
    if (behind == nullptr) {
      for (int first = 0; first < layers; ++first) {
        if (!table_.fits(slot, first, layers, in_flight)) continue;
        insert(rating_.last_stage(slot, first), frontier);
      }
      return;
    }
    for (int last = 1; last < layers; ++last) {
      for (const int next : (*behind)[index(last)]) {
        for (int first = 0; first < last; ++first) {
          if (!table_.fits(slot, first, last, in_flight)) continue;
          Partial partial = rating_.prepend(slot, first, partials_[index(next)], depth);
          partial.next = next;
          insert(partial, frontier);
        }
      }
    }
  }

  void insert(const Partial& partial, Frontier& frontier) {
    if (rating_.estimate_s(partial) + work_before_s_[index(partial.first_layer)] >
        best_.limit_s()) {
      return;
    }
    std::vector<int>& rivals = frontier[index(partial.first_layer)];
    const auto beats = [](const Partial& a, const Partial& b) {
      return a.sum_s <= b.sum_s && a.period_s <= b.period_s;
    };
    for (const int rival : rivals) {
      if (beats(partials_[index(rival)], partial)) return;
    }
    std::erase_if(rivals, [&](int rival) { return beats(partial, partials_[index(rival)]); });
    rivals.push_back(static_cast<int>(partials_.size()));
    partials_.push_back(partial);
  }

  void offer_complete(const Frontier& frontier, int depth) {
    if (stages_ != 0 && depth != stages_) return;
    for (const int whole : frontier[0]) {
      Candidate candidate;
      candidate.estimate_s = rating_.estimate_s(partials_[index(whole)]);
      for (int p = whole; p != kNone; p = partials_[index(p)].next) {
        candidate.slots.push_back(partials_[index(p)].slot);
        candidate.first_layers.push_back(partials_[index(p)].first_layer);
      }
      if (depth > 1) {
        candidate.estimate_s += rating_.tied_s(candidate.slots.front(), candidate.slots.back());
      }
      best_.offer(std::move(candidate));
    }
  }

  const StageTable& table_;
  Rating rating_;
  int stages_;
  int stages_max_ = 0;
  BestCandidates best_;
  std::vector<double> work_before_s_;  // [layer]
  std::vector<Partial> partials_;      // of the frontiers in use
  std::vector<bool> used_;             // [slot]
};

}  // namespace

std::vector<Candidate> search_cuts(const StageTable& table,
                                   double bytes_per_float,
                                   int stages,
                                   std::size_t keep) {
  return CutSearch(table, bytes_per_float, stages, keep).run();
}

double estimate_step_s(const StageTable& table,
                       double bytes_per_float,
                       const std::vector<int>& slots,
                       const std::vector<int>& first_layers) {
  const Rating rating(table, bytes_per_float);
  const auto stages = static_cast<int>(slots.size());
  Partial partial = rating.last_stage(slots.back(), first_layers.back());
  for (int stage = stages - 2; stage >= 0; --stage) {
    const auto i = static_cast<std::size_t>(stage);
    partial = rating.prepend(slots[i], first_layers[i], partial, stages - stage);
  }
  const double tied_s = stages > 1 ? rating.tied_s(slots.front(), slots.back()) : 0;
  return rating.estimate_s(partial) + tied_s;
}

}  // namespace motley
