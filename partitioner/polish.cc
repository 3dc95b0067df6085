#include "partitioner/polish.h"

#include <utility>

namespace motley {
namespace {

// Work units of one polish: a trial costs its number of stages.
constexpr long kWorkMax = 300'000;

class Polish {
 public:
  Polish(const StepEstimate& estimate, Candidate& best) : estimate_(estimate), best_(best) {}

  void run() {
    bool better = true;
    while (better && work_ < kWorkMax) {
      better = false;
      for (std::size_t i = 0; i < best_.stages.size() && work_ < kWorkMax; ++i) {
        better = move_cut(i, -1) || better;
        better = move_cut(i, +1) || better;
        better = exchange(i) || better;
        better = drop(i) || better;
      }
    }
  }

 private:
  // Of stage i, when it is not the first.
  bool move_cut(std::size_t i, int by) {
    if (i == 0 || i >= best_.stages.size()) return false;
    Candidate trial = best_;
    trial.stages[i].first_layer += by;
    const int behind = i + 1 < trial.stages.size() ? trial.stages[i + 1].first_layer
                                                   : estimate_.table().layer_count();
    if (trial.stages[i].first_layer <= trial.stages[i - 1].first_layer ||
        trial.stages[i].first_layer >= behind) {
      return false;
    }
    return take_if_better(std::move(trial));
  }

  bool exchange(std::size_t i) {
    if (i + 1 >= best_.stages.size()) return false;
    Candidate trial = best_;
    std::swap(trial.stages[i].slots, trial.stages[i + 1].slots);
    return take_if_better(std::move(trial));
  }

  // The stage before takes over its layers; at the front the one behind.
  bool drop(std::size_t i) {
    if (best_.stages.size() < 2 || i >= best_.stages.size()) return false;
    if (estimate_.space().stages != 0) return false;
    Candidate trial = best_;
    trial.stages.erase(trial.stages.begin() + static_cast<std::ptrdiff_t>(i));
    trial.stages.front().first_layer = 0;
    return take_if_better(std::move(trial));
  }

  bool take_if_better(Candidate trial) {
    constexpr double kLeastGain = 1e-12;
    work_ += static_cast<long>(trial.stages.size());
    if (!estimate_.rate(trial)) return false;
    if (trial.estimate_s >= best_.estimate_s * (1 - kLeastGain)) return false;
    best_ = std::move(trial);
    return true;
  }

  const StepEstimate& estimate_;
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

void polish(const StepEstimate& estimate, Candidate& candidate) {
  Polish(estimate, candidate).run();
}

}  // namespace motley
