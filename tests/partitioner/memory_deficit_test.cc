#include "partitioner/search/memory_deficit.h"

#include <limits>

#include "tests/partitioner/pipelines.h"
#include "tests/partitioner/random_problem.h"

namespace motley {
namespace {

RC_GTEST_PROP(MemoryDeficit, IsTheLeastOfAllCutsInTheGivenOrder, ()) {
  const Problem problem = random_problem();
  const auto cost = problem.cost();
  RC_ASSERT(cost.ok());
  const StepShape shape{*rc::gen::inRange(1, 4), *rc::gen::inRange(1, 9),
                        *rc::gen::element(ScheduleKind::kGpipe, ScheduleKind::kOneFOneB),
                        *rc::gen::inRange(1, 4)};
  const StageTable table(*cost, shape);
  const bool recompute = *rc::gen::arbitrary<bool>();
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  const int slots = static_cast<int>(cost->slots().size());
  for_each_pipeline(slots, table.layer_count(), [&](const auto& s, const auto& first_layers) {
    if (!std::is_sorted(s.begin(), s.end())) return;
    Candidate candidate;
    for (std::size_t i = 0; i < s.size(); ++i) {
      candidate.stages.push_back({{s[i]}, {}, first_layers[i], false, 0});
    }
    least = std::min(least, memory_deficit_of(table, candidate, recompute).missing_bytes);
  });
  RC_ASSERT(smallest_memory_deficit(table, SearchSpace{}, recompute).missing_bytes == least);
}

}  // namespace
}  // namespace motley
