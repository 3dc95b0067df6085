#include "cli/planning/search_budget.h"

#include <utility>

#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/partitioner/planning_fixtures.h"

namespace motley {
namespace {

constexpr double kStep_s = 1;

// An hour passes between the start and the first reading.
SearchBudget::Clock slow_computer() {
  return [now_s = 0.0]() mutable { return std::exchange(now_s, 3600); };
}

Problem five_machines() {
  Problem problem;
  problem.layers.assign(
      8, {.work_s = 0.1, .parameters = 1000, .output_floats = 100, .queued_bytes = 10});
  for (int m = 0; m < 5; ++m) problem.machines.push_back({.speed = 1 + 0.3 * m});
  problem.link = {1e5, 1e-4};
  return problem;
}

Planning plan_with(Problem problem, SearchObserver* watch) {
  problem.options.watch = watch;
  return *plan_in_full(problem.model(), problem.cluster(), problem.profile(), problem.options);
}

// A budget that multiplies the counted work.
class Laborious : public SearchBudget {
 public:
  explicit Laborious(std::int64_t times) : SearchBudget(std::nullopt), times_(times) {}

  void count_work(std::int64_t actions) override { SearchBudget::count_work(times_ * actions); }

 private:
  std::int64_t times_;
};

TEST(SearchBudget, HasTheSamePlanWhenTheClockSaysThatTimeIsOver) {
  const Planning expected = plan_with(five_machines(), nullptr);
  SearchBudget budget(std::nullopt, slow_computer());
  const Planning found = plan_with(five_machines(), &budget);
  EXPECT_TRUE(found.is_complete);
  EXPECT_EQ(plan_to_json(found.plan), plan_to_json(expected.plan));
}

TEST(SearchBudget, EndsByTheClockWhereSecondsAreAskedFor) {
  SearchBudget budget(10, slow_computer());
  EXPECT_FALSE(budget.may_continue(kStep_s));
  EXPECT_FALSE(plan_with(five_machines(), &budget).is_complete);
}

TEST(SearchBudget, EndsByWorkAndStaysSo) {
  SearchBudget budget(std::nullopt);
  budget.count_work(SearchBudget::kWorkMax - 1);
  EXPECT_TRUE(budget.may_continue(kStep_s));
  budget.count_work(1);
  EXPECT_FALSE(budget.may_continue(kStep_s));
  EXPECT_FALSE(budget.may_continue(kStep_s));
}

// Every search that may take long counts its work, so none is unbounded.
TEST(SearchBudget, EndsASearchThatIsTooMuchWork) {
  Laborious budget(10'000);
  Planning ended = plan_with(five_machines(), &budget);
  EXPECT_FALSE(ended.is_complete);
  Laborious again(10'000);
  EXPECT_EQ(plan_to_json(plan_with(five_machines(), &again).plan), plan_to_json(ended.plan));
}

}  // namespace
}  // namespace motley
