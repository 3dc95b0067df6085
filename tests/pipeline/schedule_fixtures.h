// Random schedule inputs, shared by the tests of schedules.
#pragma once

#include <algorithm>
#include <functional>

#include "pipeline/schedule/schedules.h"
#include "tests/support/property.h"

namespace motley {

// Up to 6 chunks on up to 4 ranks in any order, including ranks with several chunks or none. Half
// of the inputs assign each micro-batch of a chunk to any rank, which plans cannot express.
inline ScheduleInput random_input(int ranks_min = 1, int micro_batches_min = 1) {
  ScheduleInput input;
  input.rank_count = *rc::gen::inRange(ranks_min, 5);
  input.micro_batches = *rc::gen::inRange(micro_batches_min, 9);
  const int chunks = *rc::gen::inRange(1, 7);
  const bool replicas = *rc::gen::arbitrary<bool>();
  for (int c = 0; c < chunks; ++c) {
    const Rank rank{*rc::gen::inRange(0, input.rank_count)};
    auto& owners = input.owners.emplace_back(input.micro_batches, rank);
    if (!replicas) continue;
    for (Rank& owner : owners) owner = {*rc::gen::inRange(0, input.rank_count)};
  }
  input.tied_across_ranks =
      distinct_ranks(input.owners.front()) != distinct_ranks(input.owners.back()) &&
      *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>()) {
    for (int c = 0; c < chunks; ++c) input.in_flight.push_back(*rc::gen::inRange(1, 12));
    std::ranges::sort(input.in_flight, std::greater{});
  }
  if (*rc::gen::arbitrary<bool>()) {
    for (int c = 0; c < chunks; ++c) input.queued_weights.push_back(*rc::gen::inRange(1, 6));
  }
  return input;
}

inline Schedule random_schedule(const ScheduleInput& input) {
  const auto number = *rc::gen::inRange<std::size_t>(0, kSchedules.size() + 1);
  return number == kSchedules.size() ? forward_schedule(input)
                                     : generate_schedule(kSchedules[number].kind, input);
}

inline ScheduleInput chain(int ranks, int micro_batches) {
  ScheduleInput input;
  for (int r = 0; r < ranks; ++r) input.owners.emplace_back(micro_batches, Rank{r});
  input.rank_count = ranks;
  input.micro_batches = micro_batches;
  return input;
}

}  // namespace motley
