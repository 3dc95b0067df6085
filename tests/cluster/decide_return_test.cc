// When machines that a run continues without are used again.
#include "cluster/supervisor/decide_return.h"

#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "tests/support/property.h"

namespace motley {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const ReturnRules kRules;

AbsentMachine lost(int losses, double at_s) {
  return {.machine = "box", .losses = losses, .lost_at_s = at_s};
}

TEST(DecideReturn, UsesAMachineAgainAsSoonAsItAnswers) {
  std::vector<AbsentMachine> absent = {lost(1, 100), {.machine = "lap", .lost_at_s = 50}};
  EXPECT_THAT(returnable(101, absent, kRules), IsEmpty());
  absent[0].answers_since_s = 101;
  EXPECT_THAT(returnable(101, absent, kRules), ElementsAre("box"));
  absent[1].answers_since_s = 99;
  EXPECT_THAT(returnable(101, absent, kRules), ElementsAre("box", "lap"));
}

TEST(DecideReturn, WaitsTwiceAsLongAfterEachFurtherLoss) {
  EXPECT_EQ(earliest_return_s(lost(1, 100), kRules), 100);
  EXPECT_EQ(earliest_return_s(lost(2, 100), kRules), 160);
  EXPECT_EQ(earliest_return_s(lost(3, 100), kRules), 220);
  EXPECT_EQ(earliest_return_s(lost(6, 100), kRules), 100 + 16 * 60);
  EXPECT_EQ(earliest_return_s(lost(1000, 100), kRules), 100 + kRules.longest_wait_s);
}

TEST(DecideReturn, WaitsForTheEndOfAnExclusion) {
  AbsentMachine failed = lost(1, 100);
  failed.excluded_until_s = 400;
  failed.answers_since_s = 100;
  EXPECT_THAT(returnable(399, std::vector{failed}, kRules), IsEmpty());
  EXPECT_THAT(returnable(400, std::vector{failed}, kRules), ElementsAre("box"));
}

TEST(DecideReturn, CountsLossesAnewAfterAnHourWithoutOne) {
  const AbsentMachine first = lost_again({}, "box", 100, 0, kRules);
  EXPECT_EQ(first.losses, 1);
  EXPECT_EQ(first.lost_at_s, 100);
  EXPECT_EQ(lost_again(first, "box", 100 + 3599, 0, kRules).losses, 2);
  EXPECT_EQ(lost_again(first, "box", 100 + 3600, 0, kRules).losses, 1);
  const AbsentMachine often = lost(9, 100);  // it could not be back before
  EXPECT_EQ(lost_again(often, "box", earliest_return_s(often, kRules) + 3599, 0, kRules).losses,
            10);
}

TEST(DecideReturn, PaysIfItSavesMoreThanTheMoveCosts) {
  const ReturnGain gain{.present_step_s = 2, .step_s = 1, .start_s = 100, .steps_left = 1'000'000};
  EXPECT_TRUE(pays(gain, kRules)) << "half of 300 s";
  ReturnGain slow_start = gain;
  slow_start.start_s = 150;
  EXPECT_FALSE(pays(slow_start, kRules));
  ReturnGain end = gain;
  end.steps_left = 100;
  EXPECT_FALSE(pays(end, kRules));
  ReturnGain slower = gain;
  slower.step_s = 2.1;
  slower.start_s = 0;
  EXPECT_FALSE(pays(slower, kRules));
  ReturnGain given_plan = slower;
  given_plan.present_step_s = 0;
  EXPECT_TRUE(pays(given_plan, kRules));
}

// A machine that leaves as soon as it was used for a while, up to half an hour, at each moment when
// it may be used: in a day the run is disturbed a few dozen times.
RC_GTEST_PROP(DecideReturn, DoesNotFlap, ()) {
  constexpr double kDay_s = 86'400;
  const double stays_s = *rc::gen::inRange(1, 1800);
  std::optional<AbsentMachine> absent;
  int losses = 0;
  for (double at_s = stays_s; at_s < kDay_s; at_s = earliest_return_s(*absent, kRules) + stays_s) {
    absent = lost_again(absent, "box", at_s, 0, kRules);
    ++losses;
    RC_ASSERT(losses <= 16);
  }
}

// Any machine that answers is used again in the end.
RC_GTEST_PROP(DecideReturn, IsNeverForEver, ()) {
  AbsentMachine absent = lost(*rc::gen::inRange(1, 10'000), *rc::gen::inRange(0, 1'000'000));
  absent.answers_since_s = absent.lost_at_s;
  const double latest_s = absent.lost_at_s + kRules.longest_wait_s;
  RC_ASSERT(returnable(latest_s, std::vector{absent}, kRules).size() == 1);
}

}  // namespace
}  // namespace motley
