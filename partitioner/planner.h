// The planner: make_plan is a pure function; same input, same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/model_spec.h"
#include "partitioner/cluster.h"
#include "partitioner/pins.h"
#include "partitioner/plan.h"
#include "partitioner/profile.h"

namespace motley {

struct PlanOptions {
  int global_batch = 32;
  int micro_batch = 0;             // 0 = choose among the divisors of global_batch
  std::string schedule = "auto";   // auto | gpipe | 1f1b
  int stages = 0;                  // 0 = choose; n = exactly n
  std::vector<std::int64_t> cuts;  // fixed cuts; empty = choose
  Pins pins;
  int default_threads = 1;
  double bytes_per_float = 4;  // on the wire, from the codec
  std::string codec = "none";
  int optimizer_floats_per_parameter = 2;  // moments: adamw 2, sgd 1
};

// Chooses the devices (in an order), the cuts, the micro-batch size and the schedule that make the
// simulated step shortest and fit every device's memory. The best single machine is always among
// the candidates. kConfig when the options contradict the model (more stages than layers or
// devices, a global batch that micro-batches do not divide, pins as check_pins); kInfeasible when
// nothing fits, saying which device is short of memory and by how much.
[[nodiscard]] Result<Plan> make_plan(const ModelSpec& model,
                                     const Cluster& cluster,
                                     const Profile& profile,
                                     const PlanOptions& options);

// Whether the model's tied parameters lie on two ranks, which must then sum their gradients.
[[nodiscard]] bool tied_across_ranks(const ModelSpec& model, const Plan& plan);

// The plan as a table for people: who holds which layers, memory used and free, predicted times.
[[nodiscard]] std::string explain_plan(const Plan& plan,
                                       const ModelSpec& model,
                                       const Cluster& cluster,
                                       const Profile& profile);

}  // namespace motley
