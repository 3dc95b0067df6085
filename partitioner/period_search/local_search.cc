#include "partitioner/period_search/local_search.h"

#include <algorithm>
#include <utility>

namespace motley {
namespace {

// With more spare slots, the budget is better spent on pipelines of single slots.
constexpr std::size_t kReplicatedMax = 8;

class Descent {
 public:
  Descent(const StepEstimate& estimate,
          const std::vector<int>& spare,
          long work_max,
          const TakesChange& takes,
          Candidate& best)
      : estimate_(estimate), spare_(spare), work_max_(work_max), takes_(takes), best_(best) {}

  void run() {
    do {
      change_pipeline();
    } while (replicate_any());
  }

 private:
  void change_pipeline() {
    bool better = true;
    while (better && work_ < work_max_) {
      better = false;
      for (std::size_t i = 0; i < best_.stages.size() && work_ < work_max_; ++i) {
        better = move_cuts(i, 1, -1) || better;
        better = move_cuts(i, 1, +1) || better;
        better = move_cuts(i, 2, -1) || better;
        better = move_cuts(i, 2, +1) || better;
        better = exchange(i) || better;
        better = drop(i) || better;
        better = replace(i) || better;
        better = recode(i) || better;
      }
    }
  }

  // Runs last, after the changes of single slots.
  bool replicate_any() {
    if (!estimate_.space().replicas || spare_.size() > kReplicatedMax) return false;
    bool better = false;
    for (std::size_t i = 0; i < best_.stages.size(); ++i) better = replicate(i) || better;
    return better;
  }

  // Moves the cut before stage i, if it is not the first stage, and further cuts: two at once shift
  // a whole stage, which may help if either alone overloads a neighbour.
  bool move_cuts(std::size_t i, std::size_t count, int by) {
    if (i == 0 || i + count > best_.stages.size()) return false;
    Candidate trial = best_;
    for (std::size_t k = i; k < i + count; ++k) trial.stages[k].first_layer += by;
    const auto first_of = [&](std::size_t k) {
      return k < trial.stages.size() ? trial.stages[k].first_layer
                                     : estimate_.table().layer_count();
    };
    if (first_of(i) <= first_of(i - 1) || first_of(i + count - 1) >= first_of(i + count)) {
      return false;
    }
    return take(std::move(trial));
  }

  bool exchange(std::size_t i) {
    if (i + 1 >= best_.stages.size()) return false;
    Candidate trial = best_;
    std::swap(trial.stages[i].slots, trial.stages[i + 1].slots);
    return take(std::move(trial));
  }

  // The previous stage takes over its layers; at the front, the next one.
  bool drop(std::size_t i) {
    if (best_.stages.size() < 2 || i >= best_.stages.size()) return false;
    if (estimate_.space().stages != 0) return false;
    Candidate trial = best_;
    trial.stages.erase(trial.stages.begin() + static_cast<std::ptrdiff_t>(i));
    trial.stages.front().first_layer = 0;
    return take(std::move(trial));
  }

  // Moves a stage of one slot to a spare one.
  bool replace(std::size_t i) {
    if (i >= best_.stages.size() || best_.stages[i].slots.size() != 1) return false;
    bool better = false;
    for (const int slot : spare_) {
      if (is_taken(slot) || work_ >= work_max_) continue;
      Candidate trial = best_;
      trial.stages[i].slots = {slot};
      better = take(std::move(trial)) || better;
    }
    return better;
  }

  // Tries another codec behind a stage that recomputes, or before one: a smaller message may leave
  // enough memory to save the activations. Otherwise the estimate ranks codecs well.
  bool recode(std::size_t i) {
    if (i + 1 >= best_.stages.size()) return false;
    if (!best_.stages[i].recompute && !best_.stages[i + 1].recompute) return false;
    bool better = false;
    const int codecs = static_cast<int>(estimate_.space().codecs.size());
    for (int codec = 0; codec < codecs; ++codec) {
      if (codec == best_.stages[i].codec || work_ >= work_max_) continue;
      Candidate trial = best_;
      trial.stages[i].codec = codec;
      better = take(std::move(trial)) || better;
    }
    return better;
  }

  // Splits the micro-batches of a stage of one slot with a spare one.
  bool replicate(std::size_t i) {
    for (const int slot : spare_) {
      if (best_.stages[i].slots.size() != 1) return false;
      if (is_taken(slot) || work_ >= work_max_) continue;
      Candidate trial = best_;
      std::vector<int>& slots = trial.stages[i].slots;
      slots.insert(std::ranges::lower_bound(slots, slot), slot);
      if (take(std::move(trial))) return true;
    }
    return false;
  }

  [[nodiscard]] bool is_taken(int slot) const {
    return std::any_of(best_.stages.begin(), best_.stages.end(), [&](const StageChoice& stage) {
      return std::find(stage.slots.begin(), stage.slots.end(), slot) != stage.slots.end();
    });
  }

  bool take(Candidate trial) {
    work_ += static_cast<long>(trial.stages.size());
    if (!takes_(trial)) return false;
    best_ = std::move(trial);
    return true;
  }

  const StepEstimate& estimate_;
  const std::vector<int>& spare_;
  const long work_max_;
  const TakesChange& takes_;
  Candidate& best_;
  long work_ = 0;
};

}  // namespace

bool choose_codecs(const StepEstimate& estimate, Candidate& candidate) {
  if (!estimate.rate(candidate)) return false;
  const int codecs = static_cast<int>(estimate.space().codecs.size());
  for (std::size_t i = 0; i + 1 < candidate.stages.size(); ++i) {
    Candidate best = candidate;
    for (int codec = 0; codec < codecs; ++codec) {
      Candidate trial = candidate;
      trial.stages[i].codec = codec;
      if (estimate.rate(trial) && trial.estimate_s < best.estimate_s) best = std::move(trial);
    }
    candidate = std::move(best);
  }
  return true;
}

void descend(const StepEstimate& estimate,
             const std::vector<int>& spare,
             long work_max,
             const TakesChange& takes,
             Candidate& candidate) {
  Descent(estimate, spare, work_max, takes, candidate).run();
}

void local_search(const StepEstimate& estimate, Candidate& candidate) {
  constexpr long kWorkMax = 300'000;
  constexpr double kLeastGain = 1e-12;
  double best_s = candidate.estimate_s;
  const auto takes = [&](Candidate& changed) {
    if (!estimate.rate(changed) || changed.estimate_s >= best_s * (1 - kLeastGain)) return false;
    best_s = changed.estimate_s;
    return true;
  };
  descend(estimate, {}, kWorkMax, takes, candidate);
}

}  // namespace motley
