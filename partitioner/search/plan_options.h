// What a plan is asked for, and whether that is possible at all.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/spec/model_spec.h"
#include "partitioner/cost/kept_state.h"
#include "plan/cluster.h"
#include "plan/pins.h"
#include "plan/plan.h"

namespace motley {

class CostModel;
struct SearchSpace;

// Further codecs, where measured, that round more than the others.
struct CoarserCodecs {
  std::vector<std::string> codecs;           // of boundaries
  std::vector<std::string> gradient_codecs;  // of sums
  double least_gain;                         // only for a step shorter by at least this share
};

// Follows a search that may take long.
class SearchWatch {
 public:
  SearchWatch() = default;
  SearchWatch(const SearchWatch&) = delete;
  SearchWatch& operator=(const SearchWatch&) = delete;
  virtual ~SearchWatch() = default;

  // step_s: the shortest found so far, infinite where there is none. False ends the search with the
  // best that it has; once it was false it stays so.
  virtual bool goes_on(double step_s) = 0;

  // So much has been done since the last call, in actions of simulated steps or what takes as long.
  // It is counted, not measured: the same search does the same on any computer.
  virtual void count_work(std::int64_t /*actions*/) {}
};

struct PlanOptions {
  int global_batch = 32;
  int micro_batch = 0;  // 0 = choose among the divisors of global_batch
  // Taken where the choice is free and no other makes the step much shorter, so that a plan does
  // not depend on the noise of what was measured; 0 = none.
  int usual_micro_batch = 0;
  int micro_batch_left_out = 0;    // of the choice; 0 = none
  std::string schedule = "auto";   // auto | gpipe | 1f1b | split
  int stages = 0;                  // 0 = choose; n = exactly n
  std::vector<std::int64_t> cuts;  // fixed cuts, on the devices in their order; empty = choose
  Pins pins;
  bool replicas = true;                        // may several devices share a stage?
  std::string recompute = "auto";              // auto | none | all
  std::vector<std::string> codecs = {"none"};  // to choose from for each boundary
  // To choose from for sums of gradients between machines; those behind the first where measured.
  std::vector<std::string> gradient_codecs = {"none"};
  std::vector<CoarserCodecs> coarser = {};  // each besides those before it
  int default_threads = 1;  // of devices whose machine does not say; 0 = as they were measured
  KeptState kept = {};
  SearchWatch* watch = nullptr;  // outlives the search; nullptr: it goes on to its end

  [[nodiscard]] bool goes_on(double step_s) const {
    return watch == nullptr || watch->goes_on(step_s);
  }

  void count_work(std::int64_t actions) const {
    if (watch != nullptr) watch->count_work(actions);
  }
};

// What planning ends for in reasonable time; any plan within them can be written and read.
inline constexpr std::size_t kPlannedLayersMax = 10'000;
inline constexpr std::size_t kPlannedDevicesMax = 1'024;
inline constexpr int kPlannedMicroBatchesMax = 4'096;
static_assert(kPlannedDevicesMax * kPlannedMicroBatchesMax <= kChunkPassesMax);

// All that can be wrong before anything is measured: kConfig when there is more to plan than the
// limits above, and when the options contradict each other, the model or the cluster.
[[nodiscard]] Result<void> check_plan_options(const PlanOptions& options,
                                              const ModelSpec& model,
                                              const Cluster& cluster);

// kConfig when the profiles lack what the options ask for.
[[nodiscard]] Result<void> check_measured(const PlanOptions& options, const CostModel& cost);

// The micro-batch of a model by itself, whatever the machines: the least divisor of the global
// batch that fills the products of matrices well enough, of which a sample has so many rows.
// REQUIRES: both are at least 1.
[[nodiscard]] int usual_micro_batch(std::int64_t rows_per_sample, int global_batch);
// The same of a model; one that keeps statistics of its micro-batches, as BatchNorm does, wants
// them to be of kSamplesOfStatistics samples or more.
inline constexpr int kSamplesOfStatistics = 16;
[[nodiscard]] int usual_micro_batch(const ModelSpec& model, int global_batch);

// The micro-batch sizes to consider, ascending.
[[nodiscard]] std::vector<int> micro_batch_sizes(const PlanOptions& options);

// What the searches may choose from. REQUIRES: check_plan_options.
[[nodiscard]] SearchSpace search_space(const PlanOptions& options,
                                       const ModelSpec& model,
                                       const CostModel& cost);

}  // namespace motley
