// RecentSteps: the newest steps of a run in full, and statistics of them; bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <vector>

#include "base/json_fwd.h"
#include "record/step_metrics.h"
#include "watch/view/run_health.h"

namespace motley {

class RecentSteps {
 public:
  // A step number that is not above the last one replaces all steps from there on.
  void add(StepMetrics metrics);
  // The checkpoint of that step was committed at that time.
  void add_save(std::int64_t step, double committed_at_s);
  // A launch began at that time; the time before its first step belongs to no step.
  void add_launch(double began_at_s);

  void clear();

  // At most the newest kWindow, all with the same number of ranks as the newest.
  [[nodiscard]] std::vector<StepMetrics> steps() const;
  // The intervals between consecutive steps among the last kIntervals. Intervals with an evaluation
  // or a launch are excluded. Empty if the steps have no timestamps.
  [[nodiscard]] std::vector<StepInterval> intervals() const;

  [[nodiscard]] const StepMetrics* last() const {
    return window_.empty() ? nullptr : &window_.back();
  }

  // Medians over steps(), per step; NaN without steps.
  [[nodiscard]] double step_s() const;
  [[nodiscard]] double tokens_per_s() const;
  // The mean interval between steps, including usual pauses; step_s() if the steps have no
  // timestamps.
  [[nodiscard]] double mean_interval_s() const;

  // The members "ranks", "links" and "losses" of a state.
  [[nodiscard]] Json ranks_to_json() const;
  [[nodiscard]] Json links_to_json() const;
  [[nodiscard]] Json losses_to_json() const;

  static constexpr std::size_t kWindow = 20;
  static constexpr std::size_t kIntervals = 200;

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
