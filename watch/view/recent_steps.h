// RecentSteps: the newest steps of a run, whole, and what is made of them; in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <vector>

#include "base/json_fwd.h"
#include "cluster/follow/metrics.h"
#include "watch/view/run_verdict.h"

namespace motley {

class RecentSteps {
 public:
  // A step that is not above the last one takes the place of all from there on.
  void add(StepMetrics metrics);
  // The checkpoint of that step was committed then.
  void add_save(std::int64_t step, double committed_at_s);
  // A launch began then: the time before its first step is no step's.
  void add_launch(double began_at_s);

  void clear();

  // The newest kWindow at most, all of as many ranks as the newest.
  [[nodiscard]] std::vector<StepMetrics> steps() const;
  // From each step to the next of the last kPaces, but for those that evaluated and those between
  // which a launch began; empty where the steps do not tell their times.
  [[nodiscard]] std::vector<StepPace> paces() const;

  [[nodiscard]] const StepMetrics* last() const {
    return window_.empty() ? nullptr : &window_.back();
  }

  // Medians over steps(): of a step; not a number where there are none.
  [[nodiscard]] double step_s() const;
  [[nodiscard]] double tokens_per_s() const;
  // From a step to the next, pauses included, as far as they are usual; step_s() where the steps do
  // not tell their times.
  [[nodiscard]] double pace_s() const;

  // The members "ranks", "links" and "losses" of a state.
  [[nodiscard]] Json ranks_to_json() const;
  [[nodiscard]] Json links_to_json() const;
  [[nodiscard]] Json losses_to_json() const;

  static constexpr std::size_t kWindow = 20;
  static constexpr std::size_t kPaces = 200;

 private:
  struct Ended {
    std::int64_t step = 0;
    double at_s = 0;
    bool evaluated = false;
  };

  struct Save {
    std::int64_t step = 0;
    double committed_at_s = 0;
  };

  std::deque<StepMetrics> window_;
  std::deque<Ended> ended_;
  std::deque<Save> saves_;
  std::deque<double> launches_s_;
};

}  // namespace motley
