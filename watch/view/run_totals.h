// RunTotals: totals over all steps of a run, for monotonic counters, in bounded memory. A step that
// is repeated after a resume counts again; a line that is read again, because its file was
// truncated or replaced, does not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "checkpoint/checkpoint.h"
#include "plan/step_times.h"
#include "record/held_out_result.h"
#include "record/run_event.h"
#include "record/step_metrics.h"

namespace motley {

class RunTotals {
 public:
  struct Totals {
    std::int64_t steps = 0;
    std::int64_t skipped = 0;          // of them
    std::int64_t without_targets = 0;  // of them
    double step_s = 0;
    double tokens = 0;
    double sent_bytes = 0;
    std::vector<StepTimes> ranks;                          // [Rank], for all plans of the run
    std::map<std::pair<Rank, Rank>, double> link_bytes;    // by sender and receiver
    std::map<RunEventKind, std::int64_t> events = {};      // by kind
    std::optional<HeldOutResult> evaluation = {};          // the last one
    std::optional<BestEvaluation> best = {};               // the one with the lowest loss
    std::optional<std::pair<std::int64_t, double>> saved;  // the last checkpoint's step and time
  };

  void add(const StepMetrics& metrics);
  void add(const RunEvent& event);

  // The events file was replaced; its events are counted from its beginning.
  void forget_events() { sums_.events.clear(); }

  [[nodiscard]] const Totals& sums() const { return sums_; }

  // The number of newest steps that are recognized when they are read again.
  static constexpr std::size_t kRemembered = std::size_t{1} << 16;
  static constexpr std::size_t kLinksMax = 4096;

 private:
  struct Counted {
    std::int64_t step = 0;
    double time_s = 0;
  };

  // Records the step; returns whether it had not been counted before.
  bool take(const StepMetrics& metrics);

  Totals sums_;
  std::deque<Counted> counted_;  // steps ascend
  bool has_forgotten_ = false;   // earlier steps were counted and dropped
};

}  // namespace motley
