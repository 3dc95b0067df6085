// The search for many slots: first pipelines of single slots with the shortest period, which
// dominates a step of many micro-batches; among those near it, the shortest step.
//
// The least period is found by bisection over a PeriodProbe. With all_sets_probe the bisection's
// lower end is a proof: no pipeline has a shorter period.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "partitioner/cost/search_space.h"
#include "partitioner/cost/stage_table.h"

namespace motley {

struct PeriodBounds {
  double fluid_s = 0;        // with cuts anywhere
  double granularity_s = 0;  // with whole layers, each slot at its best place
  double proven_s = 0;       // no pipeline of single slots has a shorter period
};

struct PeriodSearchResult {
  std::vector<Candidate> candidates;  // best estimate first; empty if nothing fits
  std::vector<Candidate> untied;      // the same by the untied estimate, if requested
  PeriodBounds bounds;
  double period_s = 0;       // the least found
  bool is_complete = false;  // the search was over all sets of slots
  std::int64_t tails = 0;    // number examined
};

// untied: the table of the same model without tied parameters; the probed pipelines are then also
// rated by it.
[[nodiscard]] PeriodSearchResult search_period(const StageTable& table,
                                               const SearchSpace& space,
                                               std::size_t keep,
                                               const StageTable* untied = nullptr);

}  // namespace motley
