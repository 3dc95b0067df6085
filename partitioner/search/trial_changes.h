// TrialChanges: changes a simulated plan step by step while its simulated step gets shorter, or
// until it satisfies the pins.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "partitioner/search/candidates.h"
#include "partitioner/search/estimate_cache.h"
#include "partitioner/search/plan_trial.h"

namespace motley {

// Layers are shared only if that shortens the step by this share. Sharing costs memory twice and
// changes the bits, and on virtual devices half of the gain was measured.
inline constexpr double kSplittingGain = 0.02;

// The approximate number of actions of simulating a candidate; the unit of search budgets.
[[nodiscard]] std::int64_t actions_of(const StepShape& shape, const Candidate& candidate);

class TrialChanges {
 public:
  explicit TrialChanges(const TrialSetting& setting);

  // With the schedule of the options.
  [[nodiscard]] Result<PlanTrial> try_one(const CostModel& cost, ShapedCandidate candidate) const;

  // Each of these adds the actions that it has simulated to `actions`, and ends at a budget of its
  // own.

  // Tries other cuts, devices, numbers of stages and schedules.
  void refine(PlanTrial& best, std::int64_t& actions);
  [[nodiscard]] bool obeys_pins(const PlanTrial& trial);
  // Whether `actions` is within the budget of refine().
  [[nodiscard]] static bool may_refine(std::int64_t actions);

  // Satisfies pin after pin by the change with the shortest step; returns whether all are
  // satisfied.
  [[nodiscard]] bool obey(PlanTrial& best, std::int64_t& actions);

  // Shares a further layer between two neighbours, or one on each side of a device, while that
  // pays, then tries other shares and cuts; returns whether the plan changed. cost: one of
  // with_each_codec.
  [[nodiscard]] bool split_layers_further(const CostModel& cost,
                                          PlanTrial& best,
                                          std::int64_t& actions);

  // The same with a layer, or a part of its micro-batches, on an unused slot.
  [[nodiscard]] bool use_idle(const CostModel& cost, PlanTrial& best, std::int64_t& actions);

 private:
  std::optional<PlanTrial> try_change(const CostModel& cost,
                                      const StepShape& shape,
                                      const Candidate& changed,
                                      double limit_s,
                                      std::int64_t& actions);
  void refine_stages(PlanTrial& best, std::int64_t& actions);
  bool split_once(const CostModel& cost, PlanTrial& best, std::int64_t& actions);
  [[nodiscard]] std::vector<int> idle_slots(const Candidate& candidate) const;
  void shift(const CostModel& cost, PlanTrial& best, std::int64_t& actions);
  bool take_best_order(PlanTrial& best, std::int64_t& actions);
  bool take_best(const CostModel& cost,
                 const std::vector<Candidate>& changes,
                 double gain,
                 std::int64_t actions_max,
                 std::int64_t& actions,
                 PlanTrial& best);

  const TrialSetting setting_;
  EstimateCache estimates_;
  std::int64_t both_sides_actions_ = 0;  // over all calls of share()
};

}  // namespace motley
