#include "plan/rounds/rounds_plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace motley {

namespace {

// The last round that ends before the last step of the training; from 0.
std::int64_t rounds_before_last(const RoundsPlan& rounds, std::int64_t last_step) {
  const std::int64_t steps = last_step - rounds.start_steps - rounds.overlap_steps - 1;
  return std::max<std::int64_t>(steps, 0) / rounds.steps;
}

}  // namespace

StepScope step_scope(const std::optional<RoundsPlan>& rounds,
                     std::int64_t step,
                     std::int64_t last_step) {
  if (!rounds) return StepScope::kSynchronous;
  if (step <= rounds->start_steps) {
    if (rounds->start_island < 0) return StepScope::kSynchronous;
    return step == rounds->start_steps ? StepScope::kStartEnd : StepScope::kStart;
  }
  if (step == last_step) return StepScope::kRoundEnd;
  const std::int64_t done = step - rounds->start_steps;
  const std::int64_t most = rounds_before_last(*rounds, last_step) * rounds->steps;
  const bool offers = done % rounds->steps == 0 && done <= most;
  const bool adopts = done > rounds->overlap_steps &&
                      (done - rounds->overlap_steps) % rounds->steps == 0 &&
                      done - rounds->overlap_steps <= most;
  if (offers && adopts) return StepScope::kRoundEnd;
  if (offers) return StepScope::kOffer;
  return adopts ? StepScope::kAdopt : StepScope::kLocal;
}

std::vector<StepScope> step_scopes(const std::optional<RoundsPlan>& rounds) {
  std::vector<StepScope> scopes = {StepScope::kSynchronous};
  if (!rounds) return scopes;
  if (rounds->start_island >= 0) {
    scopes.insert(scopes.end(), {StepScope::kStart, StepScope::kStartEnd});
  }
  scopes.insert(scopes.end(), {StepScope::kLocal, StepScope::kRoundEnd});
  if (rounds->overlap_steps > 0) {
    scopes.insert(scopes.end(), {StepScope::kOffer, StepScope::kAdopt});
  }
  return scopes;
}

std::int64_t round_of(const std::optional<RoundsPlan>& rounds,
                      std::int64_t step,
                      std::int64_t last_step) {
  if (!rounds || step <= rounds->start_steps) return 0;
  const std::int64_t before = (step - rounds->start_steps - 1) / rounds->steps;
  return std::min(before, rounds_before_last(*rounds, last_step)) + 1;
}

bool has_equal_copies(StepScope scope) {
  return scope != StepScope::kStart && scope != StepScope::kLocal && scope != StepScope::kOffer;
}

std::int64_t next_state_step(const std::optional<RoundsPlan>& rounds,
                             std::int64_t step,
                             std::int64_t last_step) {
  if (!rounds || step <= rounds->start_steps || step >= last_step) return step;
  const std::int64_t before = rounds->start_steps + rounds->overlap_steps;
  const std::int64_t whole = (step - before + rounds->steps - 1) / rounds->steps;
  return std::min(before + std::max<std::int64_t>(whole, 1) * rounds->steps, last_step);
}

int saved_island(const RoundsPlan& rounds) {
  return std::max(rounds.start_island, 0);
}

int island_of(const std::optional<RoundsPlan>& rounds, Rank rank) {
  if (!rounds) return 0;
  const auto holds = [&](const std::vector<Rank>& island) {
    return std::ranges::find(island, rank) != island.end();
  };
  const auto found = std::ranges::find_if(rounds->islands, holds);
  return static_cast<int>(found - rounds->islands.begin());
}

std::vector<int> islands_by_rank(const std::optional<RoundsPlan>& rounds) {
  std::vector<int> islands;
  if (!rounds) return islands;
  for (const std::vector<Rank>& island : rounds->islands) {
    islands.resize(islands.size() + island.size());
  }
  for (Rank rank{0}; rank.index() < islands.size(); ++rank.value) {
    islands[rank.index()] = island_of(rounds, rank);
  }
  return islands;
}

std::vector<Rank> in_island_of(const std::optional<RoundsPlan>& rounds,
                               Rank self,
                               const std::vector<Rank>& ranks) {
  std::vector<Rank> together;
  std::ranges::copy_if(ranks, std::back_inserter(together), [&](Rank rank) {
    return island_of(rounds, rank) == island_of(rounds, self);
  });
  return together;
}

namespace {

std::string membership_problem(const RoundsPlan& rounds, int rank_count) {
  if (rounds.start_island >= static_cast<int>(rounds.islands.size())) {
    return fmt::format("there is no island {} for the start", rounds.start_island);
  }
  std::vector<int> memberships(static_cast<std::size_t>(rank_count));
  Rank before{-1};
  for (const std::vector<Rank>& island : rounds.islands) {
    if (!std::ranges::is_sorted(island)) return "the ranks of an island must ascend";
    if (island.front() <= before) return "the islands must be ordered by their first ranks";
    before = island.front();
    for (const Rank rank : island) ++memberships[rank.index()];
  }
  for (std::size_t rank = 0; rank < memberships.size(); ++rank) {
    if (memberships[rank] != 1) {
      return fmt::format("rank {} is in {} islands instead of one", rank, memberships[rank]);
    }
  }
  return "";
}

}  // namespace

std::string rounds_problem(const RoundsPlan& rounds,
                           int rank_count,
                           const std::vector<std::vector<Rank>>& owners) {
  if (rounds.overlap_steps >= rounds.steps) {
    return fmt::format("overlap_steps is {}, in rounds of {}; make it less", rounds.overlap_steps,
                       rounds.steps);
  }
  if (std::string problem = membership_problem(rounds, rank_count); !problem.empty()) {
    return problem;
  }
  const std::vector<int> islands = islands_by_rank(rounds);
  const auto island = [&](Rank rank) { return islands[rank.index()]; };
  for (std::size_t chunk = 0; chunk < owners.size(); ++chunk) {
    std::vector<bool> hold(rounds.islands.size());
    for (std::size_t micro = 0; micro < owners[chunk].size(); ++micro) {
      const int here = island(owners[chunk][micro]);
      hold[static_cast<std::size_t>(here)] = true;
      if (here == island(owners.front()[micro])) continue;
      return fmt::format(
          "micro-batch {} is in different islands in chunks 0 and {}; give each island the same "
          "number of micro-batches in every chunk",
          micro, chunk);
    }
    const auto without = std::ranges::find(hold, false);
    if (without == hold.end()) continue;
    return fmt::format("island {} does not hold chunk {}", without - hold.begin(), chunk);
  }
  return "";
}

}  // namespace motley
