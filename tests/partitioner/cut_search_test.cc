#include "partitioner/cut_search.h"

#include <limits>

#include "partitioner/shortfall.h"
#include "tests/partitioner/random_problem.h"

namespace motley {
namespace {

constexpr double kBytesPerFloat = 4;

StepShape random_shape() {
  return {*rc::gen::inRange(1, 4), *rc::gen::inRange(1, 9), *rc::gen::arbitrary<bool>()};
}

// The least estimate of all pipelines that fit, by trying all; infinite when none does.
double least_estimate_s(const StageTable& table, int stages) {
  double least_s = std::numeric_limits<double>::infinity();
  const int slots = static_cast<int>(table.cost().slots().size());
  for_each_pipeline(slots, table.layer_count(), [&](const auto& s, const auto& first_layers) {
    if (stages != 0 && static_cast<int>(s.size()) != stages) return;
    if (shortfall_of(table, s, first_layers).missing_bytes > 0) return;
    least_s = std::min(least_s, estimate_step_s(table, kBytesPerFloat, s, first_layers));
  });
  return least_s;
}

RC_GTEST_PROP(CutSearch, FindsTheLeastEstimateOfAllPipelinesThatFit, ()) {
  const Problem problem = random_problem();
  const auto cost = problem.cost();
  RC_ASSERT(cost.ok());
  const StageTable table(*cost, random_shape());
  const int stages = *rc::gen::inRange(0, static_cast<int>(problem.machines.size()) + 1);
  const auto found = search_cuts(table, kBytesPerFloat, stages, 3);
  const double least_s = least_estimate_s(table, stages);
  RC_ASSERT(found.empty() == (least_s == std::numeric_limits<double>::infinity()));
  if (found.empty()) return;
  RC_ASSERT(std::abs(found[0].estimate_s - least_s) <= 1e-9 * least_s);
  for (const Candidate& c : found) {
    RC_ASSERT(shortfall_of(table, c.slots, c.first_layers).missing_bytes <= 0);
  }
}

RC_GTEST_PROP(Shortfall, IsPositiveExactlyWhenNothingFitsInTheGivenOrder, ()) {
  const Problem problem = random_problem();
  const auto cost = problem.cost();
  RC_ASSERT(cost.ok());
  const StageTable table(*cost, random_shape());
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  const int slots = static_cast<int>(cost->slots().size());
  for_each_pipeline(slots, table.layer_count(), [&](const auto& s, const auto& first_layers) {
    if (!std::is_sorted(s.begin(), s.end())) return;
    least = std::min(least, shortfall_of(table, s, first_layers).missing_bytes);
  });
  RC_ASSERT(smallest_shortfall(table, 0).missing_bytes == least);
}

TEST(CutSearch, SearchesManyDevicesInLikelyOrders) {
  Problem problem;
  problem.layers.assign(40, {.work_s = 1, .output_floats = 1});
  for (int m = 0; m < 9; ++m) problem.machines.push_back({.speed = 1.0 + m % 3});
  const auto cost = problem.cost();
  ASSERT_TRUE(cost.ok());
  const auto found = search_cuts(StageTable(*cost, {1, 64, true}), kBytesPerFloat, 0, 2);
  ASSERT_EQ(found.size(), 2U);
  // 40 layers over a summed speed of 18: no period below 40 / 18, and 3 is reached easily.
  EXPECT_LT(found[0].estimate_s, 63 * 3 + 40);
}

}  // namespace
}  // namespace motley
