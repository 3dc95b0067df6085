#include "figures/pages/plan_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/figures/markup.h"
#include "tests/partitioner/planning_fixtures.h"

namespace motley {
namespace {

using testing::HasSubstr;
using testing::Not;

// Four layers on two machines; the second is half as fast.
const Problem kProblem = {
    .layers = {{.work_s = 1, .output_floats = 1000},
               {.work_s = 1, .output_floats = 1000},
               {.work_s = 1, .output_floats = 1000},
               {.work_s = 1}},
    .machines = {{.speed = 1}, {.speed = 0.5}},
    .link = {1e6, 1e-4},
    .options = {.global_batch = 8, .process_state = {.moments_per_parameter = 2}}};

struct Shown {
  PlanningInput input = kProblem.input();
  Plan plan;
  PlanAnalysis analysis;
  std::vector<std::string> names;

  Shown() {
    plan = make_plan(input).value();
    analysis = analyse_plan(input, plan).value();
    for (const RankPlan& rank : plan.ranks) names.push_back("rank on " + rank.machine);
  }

  [[nodiscard]] DisplayedPlan shown(const std::string& name) const {
    return {name, input, plan, analysis, names};
  }
};

TEST(PlanPicture, ShowsMachinesLinksAndTheStep) {
  const Shown problem;
  const auto picture = plan_picture(problem.shown("two <machines>"));
  ASSERT_TRUE(picture.ok()) << describe(picture.error());
  EXPECT_TRUE(is_well_formed(*picture)) << *picture;
  for (const char* words : {"two &lt;machines&gt;", "rank on m0", "rank on m1", "m0 → m1",
                            "8.00 Mbit/s", "without m1", "as simulated", "l0"}) {
    EXPECT_THAT(*picture, HasSubstr(words));
  }
  EXPECT_EQ(count_of(*picture, "class=\"held\""), 2U);
  EXPECT_THAT(*picture, Not(HasSubstr("nan")));
}

TEST(PlanPicture, IsTheSameForTheSamePlan) {
  const auto one = plan_picture(Shown().shown("a"));
  const auto other = plan_picture(Shown().shown("a"));
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_EQ(*one, *other);
}

TEST(PlanPicture, RefusesAPlanOfAnotherModel) {
  Shown problem;
  problem.plan.chunks.back().layer_count += 1;
  EXPECT_EQ(plan_picture(problem.shown("a")).error().code, ErrorCode::kConfig);
}

TEST(PlanPage, StandsBesideAnotherPlan) {
  const Shown problem;
  Shown alone;
  alone.input = without_machine(alone.input, "m1");
  alone.plan = make_plan(alone.input).value();
  alone.analysis = analyse_step(alone.input, alone.plan).value();
  alone.names = {"alone"};
  const auto page = plan_page(problem.shown("both"), "in & words", alone.shown("one"));
  ASSERT_TRUE(page.ok()) << describe(page.error());
  EXPECT_TRUE(is_well_formed(*page));
  EXPECT_EQ(count_of(*page, "as simulated"), 2U);
  for (const char* words : {"Beside one", "in &amp; words", "not used", ">alone<"}) {
    EXPECT_THAT(*page, HasSubstr(words));
  }
}

}  // namespace
}  // namespace motley
