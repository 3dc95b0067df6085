#include "partitioner/report/advisor.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "partitioner/report/what_if.h"
#include "tests/partitioner/random_problem.h"

namespace motley {
namespace {

using ::testing::HasSubstr;

Problem two_machines() {
  Problem problem;
  problem.layers.assign(8, {.work_s = 0.1, .output_floats = 1000});
  problem.machines = {{1}, {1}};
  return problem;
}

AdvisorReport advice_on(const Problem& problem) {
  const auto report = advise(problem.input());
  if (!report.ok()) ADD_FAILURE() << describe(report.error());
  return report.ok() ? *report : AdvisorReport{};
}

TEST(Advisor, NamesTheLinkWhereTheLinkBinds) {
  Problem problem = two_machines();
  problem.link = {4000, 0};  // an activation takes 1 s to send, a stage 0.4 s
  const AdvisorReport report = advice_on(problem);
  ASSERT_FALSE(report.helpful.empty());
  EXPECT_THAT(advice_text(report), HasSubstr("links of m0 10 times as fast"));
}

TEST(Advisor, FindsNoUseInFasterLinksThatAreIdle) {
  const AdvisorReport report = advice_on(two_machines());
  EXPECT_THAT(report.helpful.front().change, HasSubstr("speed=2"));
  EXPECT_THAT(advice_text(report), HasSubstr("less than 1 %: links of m0 2.5 times as fast"));
}

TEST(Advisor, TriesACableForWhoHasNone) {
  Problem problem = two_machines();
  problem.link = {8000, 0};  // an activation takes half a second, and its gradient as long
  problem.machines[1].medium = "wifi";
  const AdvisorReport report = advice_on(problem);
  const auto saves = [&](const char* change) {
    return std::ranges::find(report.helpful, change, &Advice::change) != report.helpful.end();
  };
  EXPECT_TRUE(saves("machine.m1.medium=cable"));
  EXPECT_THAT(advice_text(report), HasSubstr("m1 on a cable as fast as its present link"));
  EXPECT_THAT(advice_text(report), Not(HasSubstr("m0 on a cable")));
}

TEST(Advisor, TriesTheFastestMicroBatchWhereTheUsualOneWasTaken) {
  Problem problem = two_machines();
  problem.options.replicas = false;
  problem.options.usual_micro_batch = 8;  // the second machine waits for a fifth of the step
  const AdvisorReport report = advice_on(problem);
  EXPECT_THAT(advice_text(report), HasSubstr("train.micro_batch = 1"));
  EXPECT_THAT(advice_text(report), HasSubstr("micro_batch=1\n"));
  problem.options.micro_batch = 8;
  EXPECT_THAT(advice_text(advice_on(problem)), Not(HasSubstr("micro_batch")));
}

TEST(Advisor, OneMachineHasNoLinksToImprove) {
  Problem problem = two_machines();
  problem.link = {4000, 0};  // a second machine would be worth less than doubling the speed of the
                             // first
  problem.machines.resize(1);
  const AdvisorReport report = advice_on(problem);
  for (const Advice& advice : report.without_gain)
    EXPECT_THAT(advice.change, Not(HasSubstr("link")));
  EXPECT_EQ(report.helpful.front().change, "machine.m0.speed=2");
}

TEST(Advisor, TellsHowManyChangesItHasTried) {
  std::vector<std::pair<std::size_t, std::size_t>> reported;
  const auto report = advise(two_machines().input(), [&](std::size_t tried, std::size_t of) {
    reported.emplace_back(tried, of);
  });
  ASSERT_TRUE(report.ok()) << describe(report.error());
  const std::size_t all = report->helpful.size() + report->without_gain.size();
  ASSERT_EQ(reported.size(), all);
  for (std::size_t i = 0; i < all; ++i) EXPECT_EQ(reported[i], std::pair(i, all));
}

TEST(Advisor, SaysWhenNothingHelps) {
  EXPECT_THAT(advice_text({.step_s = 1}), HasSubstr("No tested change"));
}

RC_GTEST_PROP(Advisor, EachAdviceIsWhatThatChangeGives, ()) {
  const PlanningInput input = random_problem().input();
  const auto report = advise(input);
  RC_ASSERT(report.ok() == make_plan(input).ok());
  if (!report.ok() || report->helpful.empty()) return;
  double previous_s = 0;
  for (const Advice& advice : report->helpful) {
    RC_ASSERT(advice.step_s >= previous_s);
    RC_ASSERT(advice.step_s < report->step_s);
    previous_s = advice.step_s;
  }
  const auto changed = apply_changes(input, {report->helpful.front().change});
  RC_ASSERT(changed.ok());
  RC_ASSERT(make_plan(*changed)->predicted_step_s == report->helpful.front().step_s);
}

}  // namespace
}  // namespace motley
