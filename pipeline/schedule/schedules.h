// Generators of schedules. Each must pass validate_schedule (pipeline/schedule/validate.h).
#pragma once

#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "pipeline/schedule/action.h"
#include "plan/plan.h"
#include "plan/schedule_facts.h"

namespace motley {

// Times for the scheduling of split backward, all in one unit.
struct ChunkTimes {
  std::vector<PassTimes> replicas;  // for the chunk's ranks, ascending
  std::int64_t hop = 0;             // of a message over the boundary after the chunk
};

struct ScheduleInput {
  std::vector<std::vector<Rank>> owners;  // [ChunkId][MicroId]
  int rank_count = 1;
  int micro_batches = 1;
  // Chunk 0 and the last chunk hold a tied parameter, and more than one rank has a use of it.
  bool tied_across_ranks = false;
  // [ChunkId] in 1F1B and split: micro-batches between forward and backward, from 1, not increasing
  // towards the end; empty = the number of chunks behind it plus one.
  std::vector<int> in_flight;
  // [ChunkId] in split: micro-batches that a replica may queue between the two parts of backward,
  // from 1; empty = as many as are in flight in chunk 0.
  std::vector<int> queued_weights;
  // [ChunkId] for split; empty = each part takes one unit, and messages take none.
  std::vector<ChunkTimes> times;
  // As Schedule::islands.
  std::vector<std::vector<Rank>> islands;
  // After the update: begin the all-reduces of the islands' pseudo-gradients; end them, and take
  // over the new parameters.
  bool offers = false;
  bool adopts = false;
};

// GPipe: all forwards, then all backwards, each in micro-batch order.
[[nodiscard]] Schedule gpipe_schedule(const ScheduleInput& input);

// 1F1B: a chunk warms up with as many forwards as may be in flight, then alternates. Its replicas
// do so together, each with its own micro-batches. More micro-batches in flight hide slow links. On
// each rank backwards run in micro-batch order, as in every schedule here, so sums keep their order
// and results do not depend on the schedule. Receives are posted two compute actions before they
// are needed, so each transfer and its decoding overlap other computing.
[[nodiscard]] Schedule one_f_one_b_schedule(const ScheduleInput& input);

// Split (zero-bubble): backward in two parts, in an order found by list scheduling
// (pipeline/schedule/list_schedule.h). The gradient of the input goes to the previous chunk at
// once. The weight part is delayed until its rank would be idle, reaches the limit of queued parts
// or has nothing else left to do. The weight parts of a chunk run in micro-batch order too.
[[nodiscard]] Schedule split_schedule(const ScheduleInput& input);

// Forwards only, for evaluation.
[[nodiscard]] Schedule forward_schedule(const ScheduleInput& input);

// The training schedule of that kind.
[[nodiscard]] Schedule generate_schedule(ScheduleKind kind, const ScheduleInput& input);

// The plan's assignment of micro-batches to ranks, its limits and its times.
[[nodiscard]] ScheduleInput schedule_input(const Plan& plan, bool tied_across_ranks);

// The plan of a start that one island computes alone (plan/rounds/rounds_plan.h): only that island
// has chunks, with all micro-batches. REQUIRES: the plan has a start island.
[[nodiscard]] Plan plan_of_start(const Plan& plan);

// The plan of one island in a local step, with its micro-batches alone. REQUIRES: the plan has the
// island.
[[nodiscard]] Plan plan_of_island(const Plan& plan, int island);

// The offer and adoption of pseudo-gradients alone, for simulation.
[[nodiscard]] Schedule exchange_schedule(const Plan& plan);

// The training schedule that a plan names, for steps of this scope. kConfig for an unknown name.
// REQUIRES: a scope other than synchronous is one of a plan with rounds.
[[nodiscard]] Result<Schedule> make_schedule(const Plan& plan,
                                             bool tied_across_ranks,
                                             StepScope scope = StepScope::kSynchronous);

}  // namespace motley
