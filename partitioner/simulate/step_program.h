// A step as a program for the simulator: each rank's actions become a few operations with their
// times, and every message a number. The inputs of each action are defined by its rules
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
  kSend,     // encodes for `seconds`, then sends the message
  kReceive,  // waits for the message, then decodes for `seconds`
};

struct StepOp {
  double seconds = 0;         // of the rank's compute stream, or of its asynchronous codecs
  std::uint32_t action = 0;   // index in the rank's list
  std::uint32_t message = 0;  // of kSend and kReceive
  OpKind kind = OpKind::kCompute;
};

struct StepMessage {
  double bytes = 0;
  std::uint32_t from = 0;  // rank
  std::uint32_t to = 0;    // rank
  bool is_bulk = false;    // part of an all-reduce, which yields to other messages
};

struct StepProgram {
  std::vector<StepOp> ops;            // rank after rank
  std::vector<std::size_t> first_op;  // [Rank], and the number of all operations
  std::vector<StepMessage> messages;  // by number; those never sent are empty
};

// O and A are the all-reduces of all chunks, as R and T; a schedule has one kind or the other.
//
// draw_seed: if set, each computing time is drawn from the measured distribution instead of its
// median. REQUIRES: as simulate_step; every codec of the plan was measured.
[[nodiscard]] StepProgram compile_step(const Schedule& schedule,
                                       const Plan& plan,
                                       const CostModel& cost,
                                       const std::vector<int>& rank_slots,
                                       std::optional<std::uint64_t> draw_seed);

}  // namespace motley
