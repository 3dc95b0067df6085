// TrialChanges: a simulated plan changed step by step as long as its simulated step gets shorter,
// or until it obeys the pins.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "partitioner/search/candidates.h"
#include "partitioner/search/estimate_cache.h"
#include "partitioner/search/plan_trial.h"

namespace motley {

// Layers are shared only where that makes the step shorter by this share: it costs memory twice and
// the bits that one machine would have, and on virtual devices half of the gain was measured.
inline constexpr double kSharingGain = 0.02;

// How many actions it takes about to simulate a candidate; the budgets of searches are in these.
[[nodiscard]] std::int64_t actions_of(const StepShape& shape, const Candidate& candidate);

class TrialChanges {
 public:
  explicit TrialChanges(const TrialSetting& setting);

  // With the schedule that the options ask for.
  [[nodiscard]] Result<PlanTrial> try_one(const CostModel& cost, ShapedCandidate candidate) const;

  // Each of these adds to `actions` what it has simulated, and ends at a budget of its own kind.

  // Other cuts, devices, numbers of stages and orders of passes.
  void refine(PlanTrial& best, std::int64_t& actions);
  [[nodiscard]] bool obeys_pins(const PlanTrial& trial);
  // Whether `actions` leaves room to refine more.
  [[nodiscard]] static bool may_refine(std::int64_t actions);

  // Pin after pin by the change that makes the step shortest; whether all are obeyed then.
  [[nodiscard]] bool obey(PlanTrial& best, std::int64_t& actions);

  // A layer more on two neighbours, or one on each side of a device, as long as that pays, then
  // other shares and cuts; whether anything did. cost: one of with_each_codec.
  [[nodiscard]] bool share(const CostModel& cost, PlanTrial& best, std::int64_t& actions);

  // The same with a layer, or a part of its micro-batches, for a slot that was left out.
  [[nodiscard]] bool use_idle(const CostModel& cost, PlanTrial& best, std::int64_t& actions);

 private:
  std::optional<PlanTrial> try_change(const CostModel& cost,
                                      const StepShape& shape,
                                      const Candidate& changed,
                                      double limit_s,
                                      std::int64_t& actions);
  void refine_stages(PlanTrial& best, std::int64_t& actions);
  bool share_once(const CostModel& cost, PlanTrial& best, std::int64_t& actions);
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
  std::int64_t both_sides_actions_ = 0;  // of all share() together
};

}  // namespace motley
