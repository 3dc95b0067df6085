// Rounds of local training (DiLoCo; decision 0065). Islands are groups of ranks that synchronise
// within every step; between islands parameters are synchronised at the end of each round of
// `steps` steps, by all-reduces of pseudo-gradients: the differences between the parameters at the
// beginning of the round, the anchor, and those at its end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"

namespace motley {

inline constexpr std::int64_t kRoundStepsMax = 1'000'000;

struct RoundsPlan {
  // At least two, ordered by their first ranks, which ascend; every rank of the plan is in one.
  std::vector<std::vector<Rank>> islands;
  std::int64_t steps = 1;  // of a round, from 1
  // The first steps of the next round, during which the all-reduces of a round run; from 0, below
  // `steps`. With 0 islands wait for them at the end of the round.
  std::int64_t overlap_steps = 0;
  std::int64_t start_steps = 0;  // before the first round
  // The island that computes the start alone, while the others wait for its parameters and
  // moments; -1 = all compute it synchronously.
  int start_island = -1;
  std::string codec = "int4";  // of pseudo-gradients between machines
  // The outer optimizer: SGD with Nesterov momentum on the mean of the pseudo-gradients.
  double outer_lr = 0.7;
  double outer_momentum = 0.6;
};

// What the ranks of a plan do in a step, in the order of a training.
enum class StepScope : std::uint8_t {
  kSynchronous,  // all replicas all-reduce their gradients
  kStart,        // one island computes alone
  kStartEnd,     // the same; afterwards its state is sent to all others
  kLocal,        // the replicas of each island all-reduce their gradients
  kOffer,        // the same; after the update, the all-reduces of a round begin
  kAdopt,        // the same; after the update, they end, and islands take over the new anchor
  kRoundEnd      // the same; both after the update of this step
};

// The scope of a step, counted from 1. `last_step`: of the training; it ends a round too, and waits
// for its all-reduces. A round whose overlap would reach it is continued up to there instead.
// Without rounds (nullopt) every step is synchronous.
[[nodiscard]] StepScope step_scope(const std::optional<RoundsPlan>& rounds,
                                   std::int64_t step,
                                   std::int64_t last_step);

// The scopes that a training may have; a synchronous one always.
[[nodiscard]] std::vector<StepScope> step_scopes(const std::optional<RoundsPlan>& rounds);

// The number of the round of a step, from 1; 0 of a step of the start.
[[nodiscard]] std::int64_t round_of(const std::optional<RoundsPlan>& rounds,
                                    std::int64_t step,
                                    std::int64_t last_step);

// Whether all copies of a parameter are equal after a step of that scope; with overlap, all anchors
// of a round.
[[nodiscard]] bool has_equal_copies(StepScope scope);

// The first step from `step` on after which the training has one state, which can be evaluated and
// saved: a step of the start, or one at which islands take over an anchor.
[[nodiscard]] std::int64_t next_state_step(const std::optional<RoundsPlan>& rounds,
                                           std::int64_t step,
                                           std::int64_t last_step);

// The island whose copies that state consists of.
[[nodiscard]] int saved_island(const RoundsPlan& rounds);

// The number of the rank's island; 0 without rounds. REQUIRES: the rank is one of the plan.
[[nodiscard]] int island_of(const std::optional<RoundsPlan>& rounds, Rank rank);
// [Rank] the number of each rank's island; empty without rounds.
[[nodiscard]] std::vector<int> islands_by_rank(const std::optional<RoundsPlan>& rounds);

// Those of the ranks that are in the same island as `self`, in their order; all without rounds.
[[nodiscard]] std::vector<Rank> in_island_of(const std::optional<RoundsPlan>& rounds,
                                             Rank self,
                                             const std::vector<Rank>& ranks);

// Why the rounds do not fit a plan with these owners of micro-batches, [ChunkId][MicroId]; empty if
// they do: an overlap as long as a round, a rank in no island or in two, an island without a chunk,
// a micro-batch that passes through two islands.
[[nodiscard]] std::string rounds_problem(const RoundsPlan& rounds,
                                         int rank_count,
                                         const std::vector<std::vector<Rank>>& owners);

}  // namespace motley
