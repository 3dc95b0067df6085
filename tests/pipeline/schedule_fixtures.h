// Random schedule inputs, shared by the tests of schedules.
#pragma once

#include "pipeline/schedules.h"
#include "tests/support/property.h"

namespace motley {

// Up to 6 chunks on up to 4 ranks in any order, also with ranks that hold several or none.
inline ScheduleInput random_input(int ranks_min = 1) {
  ScheduleInput input;
  input.rank_count = *rc::gen::inRange(ranks_min, 5);
  input.micro_batches = *rc::gen::inRange(1, 9);
  const int chunks = *rc::gen::inRange(1, 7);
  for (int c = 0; c < chunks; ++c) {
    input.chunk_ranks.push_back({*rc::gen::inRange(0, input.rank_count)});
  }
  input.tied_across_ranks =
      input.chunk_ranks.front() != input.chunk_ranks.back() && *rc::gen::arbitrary<bool>();
  return input;
}

inline Schedule random_schedule(const ScheduleInput& input) {
  switch (*rc::gen::inRange(0, 3)) {
    case 0:
      return gpipe_schedule(input);
    case 1:
      return one_f_one_b_schedule(input);
    default:
      return forward_schedule(input);
  }
}

inline ScheduleInput chain(int ranks, int micro_batches) {
  ScheduleInput input;
  for (int r = 0; r < ranks; ++r) input.chunk_ranks.push_back({r});
  input.rank_count = ranks;
  input.micro_batches = micro_batches;
  return input;
}

}  // namespace motley
