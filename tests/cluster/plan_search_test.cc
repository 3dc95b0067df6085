#include "cluster/replan/plan_search.h"

#include <future>
#include <thread>

#include <gtest/gtest.h>

namespace motley {
namespace {

// Finds nothing, and does not end by itself.
class EndlessSearch {
 public:
  PlanSearch::Find find() {
    return [this](const PlanningInput& input, const RunMeasurement&,
                  double) -> Result<std::optional<BetterPlan>> {
      began_.set_value();
      while (input.options.watch->may_continue(0)) std::this_thread::yield();
      was_cancelled_ = true;
      return std::optional<BetterPlan>();
    };
  }

  void wait_until_begun() { began_.get_future().wait(); }

  [[nodiscard]] bool was_cancelled() const { return was_cancelled_; }

 private:
  std::promise<void> began_;
  bool was_cancelled_ = false;  // read after the search has ended
};

TEST(PlanSearch, IsCancelledByTheDestructor) {
  EndlessSearch endless;
  {
    PlanSearch search({}, endless.find());
    ASSERT_TRUE(search.begin({}, 0.05).ok());
    endless.wait_until_begun();
    EXPECT_TRUE(search.is_busy());
    EXPECT_FALSE(search.take());
  }
  EXPECT_TRUE(endless.was_cancelled());
}

TEST(PlanSearch, IsBusyUntilItsResultIsTaken) {
  PlanSearch search({}, [](const PlanningInput&, const RunMeasurement&, double least_gain) {
    return Result<std::optional<BetterPlan>>(BetterPlan{.present_step_s = least_gain});
  });
  EXPECT_FALSE(search.is_busy());
  ASSERT_TRUE(search.begin({}, 0.25).ok());
  std::optional<Result<std::optional<BetterPlan>>> found;
  while (!found) {
    EXPECT_TRUE(search.is_busy());
    found = search.take();
  }
  EXPECT_FALSE(search.is_busy());
  ASSERT_TRUE(found->ok());
  EXPECT_EQ((**found)->present_step_s, 0.25);
}

}  // namespace
}  // namespace motley
