// The options of a plan, and checks that they are possible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/spec/model_spec.h"
#include "partitioner/cost/resident_state.h"
#include "plan/cluster.h"
#include "plan/pins.h"
#include "plan/plan.h"

namespace motley {

class CostModel;
struct SearchSpace;

// Additional codecs, if measured, that round more than the others.
struct CoarserCodecs {
  std::vector<std::string> codecs;           // of boundaries
  std::vector<std::string> gradient_codecs;  // of all-reduces
  double least_gain;                         // only for a step shorter by this share
};

// Follows a search that may take long, and can stop it.
class SearchObserver {
 public:
  SearchObserver() = default;
  SearchObserver(const SearchObserver&) = delete;
  SearchObserver& operator=(const SearchObserver&) = delete;
  virtual ~SearchObserver() = default;

  // step_s: the shortest found so far, infinite if there is none. False stops the search with its
  // best result; once false, it stays false.
  virtual bool may_continue(double step_s) = 0;

  // Work since the last call, in simulated actions or units of similar duration. It is counted, not
  // measured: the same search does the same on any computer.
  virtual void count_work(std::int64_t /*actions*/) {}
};

// Rounds of local training (plan/rounds/rounds_plan.h).
struct RoundOptions {
  std::int64_t steps = 0;  // of a round; 0 = to choose, if rounds pay at all
  // RoundsPlan::overlap_steps; nullopt = to choose.
  std::optional<std::int64_t> overlap_steps = {};
  bool is_required = true;       // with a given number of steps: whether a plan without is an error
  std::int64_t train_steps = 0;  // of the training
  double synchronous_start = 0;  // share of them before the first round
  std::int64_t warmup_steps = 0;  // of the learning rate
  std::string codec = "int4";     // of pseudo-gradients
  double outer_lr = 0.7;
  double outer_momentum = 0;  // 0 = by the number of rounds
};

struct PlanOptions {
  int global_batch = 32;
  int micro_batch = 0;  // 0 = choose among the divisors of global_batch
  // Taken if the size is free and no other makes the step much shorter, so that a plan does not
  // depend on measurement noise; 0 = none.
  int usual_micro_batch = 0;
  int micro_batch_left_out = 0;    // excluded from the choice; 0 = none
  std::string schedule = "auto";   // "auto" or ScheduleFacts::name
  int stages = 0;                  // 0 = choose; n = exactly n
  std::vector<std::int64_t> cuts;  // fixed cuts, on the devices in their order; empty = choose
  Pins pins;
  bool replicas = true;                        // whether several devices may share a stage
  std::string recompute = "auto";              // auto | none | all
  std::vector<std::string> codecs = {"none"};  // to choose from for each boundary
  // Choices for all-reduces between machines; all but the first only if measured.
  std::vector<std::string> gradient_codecs = {"none"};
  std::vector<CoarserCodecs> coarser = {};  // each in addition to those before it
  std::optional<RoundOptions> rounds = {};  // nullopt: synchronous plans only
  int default_threads = 1;  // of devices without a configured number; 0 = as measured
  ResidentState process_state = {};
  SearchObserver* watch = nullptr;  // must outlive the search; nullptr: no limit

  [[nodiscard]] bool may_continue(double step_s) const {
    return watch == nullptr || watch->may_continue(step_s);
  }

  void count_work(std::int64_t actions) const {
    if (watch != nullptr) watch->count_work(actions);
  }
};

// Of a parameter's state in rounds (training/rounds/outer_optimizer.h): anchor, velocity and
// pseudo-gradient. Its residual is counted as that of an all-reduce.
inline constexpr int kRoundFloatsPerParameter = 3;
// The expected anchor, if steps overlap the all-reduces.
inline constexpr int kOverlapFloatsPerParameter = 1;

// What the plan's processes hold: with rounds, their state beside the optimizer's.
[[nodiscard]] inline ResidentState process_state_of(const PlanOptions& options, const Plan& plan) {
  ResidentState state = options.process_state;
  if (!plan.rounds) return state;
  state.moments_per_parameter += kRoundFloatsPerParameter;
  if (plan.rounds->overlap_steps > 0) state.moments_per_parameter += kOverlapFloatsPerParameter;
  return state;
}

// Whether the options leave the planner the whole model on several devices, as rounds need it.
[[nodiscard]] inline bool permits_rounds(const PlanOptions& options) {
  return options.replicas && options.stages <= 1 && options.cuts.empty();
}

// Limits for planning in reasonable time; any plan within them can be written and read.
inline constexpr std::size_t kPlannedLayersMax = 10'000;
inline constexpr std::size_t kPlannedDevicesMax = 1'024;
inline constexpr int kPlannedMicroBatchesMax = 4'096;
static_assert(kPlannedDevicesMax * kPlannedMicroBatchesMax <= kChunkPassesMax);

// All checks before measurements: kConfig if the problem exceeds the limits above, or if the
// options contradict each other, the model or the cluster.
[[nodiscard]] Result<void> check_plan_options(const PlanOptions& options,
                                              const ModelSpec& model,
                                              const Cluster& cluster);

// kConfig if the profiles lack what the options need.
[[nodiscard]] Result<void> check_measured(const PlanOptions& options, const CostModel& cost);

// The usual micro-batch of a model, independent of the machines: the least divisor of the global
// batch with enough rows for efficient matrix products. A sample has rows_per_sample rows.
// REQUIRES: both are at least 1.
[[nodiscard]] int usual_micro_batch(std::int64_t rows_per_sample, int global_batch);
// The same for a model. With statistics of micro-batches, as in BatchNorm, it has at least
// kSamplesOfStatistics samples.
inline constexpr int kSamplesOfStatistics = 16;
[[nodiscard]] int usual_micro_batch(const ModelSpec& model, int global_batch);

// The micro-batch sizes to consider, ascending.
[[nodiscard]] std::vector<int> micro_batch_sizes(const PlanOptions& options);

// The choices of the searches. REQUIRES: check_plan_options.
[[nodiscard]] SearchSpace search_space(const PlanOptions& options,
                                       const ModelSpec& model,
                                       const CostModel& cost);

}  // namespace motley
