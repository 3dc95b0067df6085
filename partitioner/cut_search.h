// The search over device orders and cuts for one micro-batch size and schedule.
//
// A candidate is rated by a closed estimate of its step (docs/algorithms.md):
//   step = S + (m - 1) P,  S = sum of work + 2 x transfers along the pipeline,
//   P = the period: the slowest stage, link or, in 1F1B, round trip below the limit in flight.
// For each order of devices the estimate's minimum over all cuts under all memory limits is exact:
// a dynamic programme from the last stage backwards keeps, for each first layer, every (S, P) that
// no other beats in both. Both grow when a stage is put in front, so nothing better is lost.
#pragma once

#include <cstddef>
#include <vector>

#include "partitioner/stage_table.h"

namespace motley {

struct Candidate {
  std::vector<int> slots;         // [stage] of the cost model
  std::vector<int> first_layers;  // [stage] ascending from 0
  double estimate_s = 0;
};

// Up to this many slots every order of every subset is searched; above it, only the orders as
// given, fastest first and slowest first, each with any slots left out.
inline constexpr std::size_t kAllOrdersSlotsMax = 6;

// The `keep` best candidates that fit, best first; fewer when fewer exist. Deterministic.
// stages: exactly that many; 0 = any number.
[[nodiscard]] std::vector<Candidate> search_cuts(const StageTable& table,
                                                 double bytes_per_float,
                                                 int stages,
                                                 std::size_t keep);

// The estimate of given stages, whether they fit or not.
[[nodiscard]] double estimate_step_s(const StageTable& table,
                                     double bytes_per_float,
                                     const std::vector<int>& slots,
                                     const std::vector<int>& first_layers);

}  // namespace motley
