// A step as a program: each rank's actions become a few operations with their times, and every
// message a number. What the simulator runs; which action needs what is decided by its rules
// (pipeline/schedule/action_rules.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "partitioner/cost/cost_model.h"
#include "pipeline/schedule/action.h"
#include "plan/plan.h"

namespace motley {

enum class OpKind : std::uint8_t {
  kCompute,  // for `seconds`
  kSend,     // encodes for `seconds`, then the message goes
  kReceive,  // waits for the message, then decodes for `seconds`
};

struct StepOp {
  double seconds = 0;         // of the rank's compute stream, or of its codecs beside
  std::uint32_t action = 0;   // index in the rank's list
  std::uint32_t message = 0;  // of kSend and kReceive
  OpKind kind = OpKind::kCompute;
};

struct StepMessage {
  double bytes = 0;
  std::uint32_t from = 0;  // rank
  std::uint32_t to = 0;    // rank
  bool is_bulk = false;    // part of a sum over replicas, which lets the others go first
};

struct StepProgram {
  std::vector<StepOp> ops;            // of all ranks, one rank behind the other
  std::vector<std::size_t> first_op;  // [Rank], and the number of all operations
  std::vector<StepMessage> messages;  // by number; those never sent are empty
};

// draw_seed: each computing time is drawn from the measured spread instead of its median.
// REQUIRES: as simulate_step; every codec of the plan was measured.
[[nodiscard]] StepProgram compile_step(const Schedule& schedule,
                                       const Plan& plan,
                                       const CostModel& cost,
                                       const std::vector<int>& rank_slots,
                                       std::optional<std::uint64_t> draw_seed);

}  // namespace motley
