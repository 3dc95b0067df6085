// PlanSketch: the contents of a picture of a plan: the layers of each device, its utilisation and
// memory, and the traffic of the links.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "partitioner/report/plan_analysis.h"
#include "partitioner/report/planning_input.h"
#include "plan/cluster.h"
#include "plan/plan.h"

namespace motley {

// A contiguous run of layers on a rank.
struct LayerRun {
  int first_layer = 0;
  int layer_count = 0;
  bool recompute = false;
};

struct RankSketch {
  std::string machine;
  std::string device;
  int threads = 1;
  std::vector<LayerRun> runs;
  std::string layers;  // "embed … h.3.mlp (9)", the runs by their layers' names
  std::int64_t parameters = 0;
  RankTime time;
  double memory_bytes = 0;        // predicted peak
  double memory_limit_bytes = 0;  // of the device; 0 = unknown
};

// One direction between two machines that the plan uses.
struct LinkSketch {
  LinkUse use;
  std::string codec;  // of the boundaries between stages; "" if there are none
  LinkSpeed speed;
};

struct PlanSketch {
  double step_s = 0;
  double units_per_s = 0;
  std::string unit;   // of the model: "tokens", "samples"
  std::string shape;  // "1f1b, 64 micro-batches of 1 sample"
  int layer_count = 0;
  std::int64_t parameters = 0;
  std::int64_t frozen_values = 0;  // constants
  std::string times_label;         // times_label() of the plan
  std::vector<RankSketch> ranks;   // [Rank]
  std::vector<LinkSketch> links;   // most used first
};

// kConfig if the plan does not match the input. REQUIRES: `analysis` is the result of analyse_step
// or analyse_plan for the same arguments.
[[nodiscard]] Result<PlanSketch> sketch_plan(const PlanningInput& input,
                                             const Plan& plan,
                                             const PlanAnalysis& analysis);

}  // namespace motley
