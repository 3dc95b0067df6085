#include "watch/view/run_health.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/property.h"

namespace motley {
namespace {

using testing::HasSubstr;

constexpr double kPlannedStep_s = 0.4;

// Three machines in a row that compute as planned; the first and the last wait for the second.
AssessedRun as_planned() {
  AssessedRun run;
  run.predicted_step_s = kPlannedStep_s;
  run.ranks = {{"desk", 0.2, 8'000'000'000}, {"box", 0.38, 8'000'000'000}, {"mini", 0.1, 0}};
  run.links = {{Rank{0}, Rank{1}, 125e6}, {Rank{1}, Rank{2}, 12.5e6}};
  for (int i = 1; i <= 10; ++i) {
    StepMetrics step;
    step.step = i;
    step.outcome.loss = 2;
    step.outcome.tokens = 1000;
    step.step_s = kPlannedStep_s;
    for (const AssessedRank& rank : run.ranks) {
      StepMetrics::RankStep part;
      part.times.compute_s = rank.predicted_compute_s;
      part.times.wait_s.of(WaitCause::kActivation) = kPlannedStep_s - rank.predicted_compute_s;
      part.memory_bytes = 1'000'000'000;
      step.wait_s.push_back(part.times.wait_s.total());
      step.ranks.push_back(part);
    }
    step.links = {{Rank{0}, Rank{1}, 4'000'000}, {Rank{1}, Rank{2}, 4'000'000}};
    run.steps.push_back(std::move(step));
  }
  return run;
}

// The rank computes `by_s` seconds longer in this step, and all others wait for it.
void slow_down(StepMetrics& step, std::size_t rank, double by_s) {
  step.step_s += by_s;
  for (std::size_t r = 0; r < step.ranks.size(); ++r) {
    if (r == rank) {
      step.ranks[r].times.compute_s += by_s;
    } else {
      step.ranks[r].times.wait_s.of(WaitCause::kGradient) += by_s;
      step.wait_s[r] += by_s;
    }
  }
}

void hold_up(StepMetrics& step, double by_s) {
  step.step_s += by_s;
  for (std::size_t r = 0; r < step.ranks.size(); ++r) {
    step.ranks[r].times.wait_s.of(WaitCause::kActivation) += by_s;
    step.wait_s[r] += by_s;
  }
}

TEST(RunHealth, IsAsPlannedWhereAllIs) {
  const RunHealth health = assess(as_planned());
  EXPECT_EQ(health.level, HealthLevel::kGood);
  EXPECT_EQ(health.text, "as planned: 400.00 ms a step");
  EXPECT_EQ(health.advice, "");
}

TEST(RunHealth, NamesTheMachineThatComputesLonger) {
  AssessedRun run = as_planned();
  for (StepMetrics& step : run.steps) slow_down(step, 1, 0.09 * 0.38);
  const RunHealth health = assess(run);
  EXPECT_EQ(health.level, HealthLevel::kWatch);
  EXPECT_EQ(health.text, "box is the bottleneck: +9 % over plan");
  EXPECT_NE(health.advice, "");
}

TEST(RunHealth, KnowsItOfFilesThatOnlyTellWaits) {
  AssessedRun run = as_planned();
  for (StepMetrics& step : run.steps) {
    slow_down(step, 1, 0.2);
    step.ranks.clear();
    step.links.clear();
  }
  EXPECT_EQ(assess(run).level, HealthLevel::kBad);
  EXPECT_THAT(assess(run).text, HasSubstr("box is the bottleneck"));
}

TEST(RunHealth, NamesTheBusiestLinkWhereAllWait) {
  AssessedRun run = as_planned();
  for (StepMetrics& step : run.steps) hold_up(step, 0.08);
  const RunHealth health = assess(run);
  EXPECT_EQ(health.level, HealthLevel::kWatch);
  EXPECT_EQ(health.text,
            "the link box → mini is below its rate: steps take +20 % over plan in waiting, for 3.8 "
            "MiB a step at 100 Mbit/s");
}

TEST(RunHealth, BlamesNoLinkThatHasLittleToCarry) {
  AssessedRun run = as_planned();
  for (StepMetrics& step : run.steps) {
    for (StepMetrics::Sent& sent : step.links) sent.bytes /= 10;
    hold_up(step, 0.08);
  }
  EXPECT_EQ(assess(run).text, "steps take +20 % over plan, and no machine computes longer");
  EXPECT_THAT(assess(run).advice,
              HasSubstr("most bytes use box → mini: measure it with motley probe"));
}

TEST(RunHealth, BlamesNoLinkInsideAMachine) {
  AssessedRun run = as_planned();
  for (AssessedRank& rank : run.ranks) rank.machine = "desk";
  for (StepMetrics& step : run.steps) hold_up(step, 0.08);
  EXPECT_EQ(assess(run).text, "steps take +20 % over plan, and no machine computes longer");
  EXPECT_THAT(assess(run).advice, Not(HasSubstr("most bytes use")));
}

TEST(RunHealth, SaysWhenMemoryRunsOut) {
  AssessedRun run = as_planned();
  for (StepMetrics& step : run.steps) step.ranks[1].memory_bytes = 7'500'000'000;
  EXPECT_EQ(assess(run).level, HealthLevel::kWatch);
  EXPECT_EQ(assess(run).text, "box is near its memory limit: 6.98 GiB of 7.45 GiB");
  // Current time losses come first, unless memory is nearly exhausted.
  for (StepMetrics& step : run.steps) slow_down(step, 0, 0.3);
  EXPECT_THAT(assess(run).text, HasSubstr("desk is the bottleneck"));
  for (StepMetrics& step : run.steps) step.ranks[1].memory_bytes = 7'900'000'000;
  EXPECT_THAT(assess(run).text, HasSubstr("memory"));
  EXPECT_EQ(assess(run).level, HealthLevel::kBad);
}

TEST(RunHealth, SaysWhenSavingIsInTheWay) {
  AssessedRun run = as_planned();
  for (int i = 0; i < 40; ++i) run.intervals.push_back({i % 10 == 0 ? 1.4 : 0.4, i % 10 == 0});
  EXPECT_EQ(assess(run).text, "saving takes 20 % of the time");
  for (StepInterval& interval : run.intervals) interval.saving = false;
  EXPECT_THAT(assess(run).text, HasSubstr("as planned"));
}

TEST(RunHealth, SaysWhenStepsAreSkipped) {
  AssessedRun run = as_planned();
  for (std::size_t i = run.steps.size() - 4; i < run.steps.size(); ++i)
    run.steps[i].outcome.skipped = true;
  EXPECT_EQ(assess(run).level, HealthLevel::kBad);
  EXPECT_THAT(assess(run).text, HasSubstr("4 of the last 6 steps were skipped"));
}

TEST(RunHealth, SaysWhenItIsFaster) {
  AssessedRun run = as_planned();
  for (StepMetrics& step : run.steps) step.step_s = 0.3;
  EXPECT_EQ(assess(run).text, "faster than planned: 300.00 ms a step, -25 %");
  EXPECT_EQ(assess(run).level, HealthLevel::kGood);
}

TEST(RunHealth, WaitsForSomeSteps) {
  AssessedRun run = as_planned();
  run.steps.resize(kWindowSteps - 1);
  for (StepMetrics& step : run.steps) slow_down(step, 1, 1);
  EXPECT_EQ(assess(run).text, "too few steps for a summary");
  run.steps.clear();
  EXPECT_EQ(assess(run).level, HealthLevel::kGood);
}

TEST(RunHealth, NeedsAPredictionToCompareWith) {
  AssessedRun run = as_planned();
  run.predicted_step_s = 0;
  for (StepMetrics& step : run.steps) slow_down(step, 1, 1);
  EXPECT_EQ(assess(run).text, "1.400 s a step; no prediction");
}

TEST(RunHealth, OneMachineIsNoBottleneckOfOthers) {
  AssessedRun run = as_planned();
  for (AssessedRank& rank : run.ranks) rank.machine = "local";
  for (StepMetrics& step : run.steps) slow_down(step, 1, 0.74 * 0.38);
  EXPECT_EQ(assess(run).text, "local computes 74 % longer than planned");
}

TEST(RunHealth, OfAnEndedRunSaysWhatIsLearnt) {
  AssessedRun run = as_planned();
  EXPECT_EQ(retrospective_of(run), "");
  for (StepMetrics& step : run.steps) slow_down(step, 1, 0.74 * 0.38);
  EXPECT_EQ(retrospective_of(run), "box computed 74 % longer than planned");
  run = as_planned();
  for (StepMetrics& step : run.steps) hold_up(step, 0.2);
  EXPECT_THAT(retrospective_of(run),
              HasSubstr("was below its rate: steps took 50 % longer than planned"));
}

// A single bad step changes nothing, whatever happened in it.
RC_GTEST_PROP(VerdictProperty, OneStepDecidesNothing, ()) {
  AssessedRun run = as_planned();
  const auto at = *rc::gen::inRange<std::size_t>(0, run.steps.size());
  const auto rank = *rc::gen::inRange<std::size_t>(0, run.ranks.size());
  const double by_s = *rc::gen::inRange(1, 10'000) * 0.01;
  if (*rc::gen::arbitrary<bool>()) hold_up(run.steps[at], by_s);
  slow_down(run.steps[at], rank, by_s);
  run.steps[at].outcome.skipped = *rc::gen::arbitrary<bool>();
  RC_ASSERT(assess(run) == assess(as_planned()));
}

// The slow rank is the one that computes longer, in any order of ranks and for any scale of times.
RC_GTEST_PROP(VerdictProperty, NamesTheSlowRank, ()) {
  AssessedRun run = as_planned();
  const auto rank = *rc::gen::inRange<std::size_t>(0, run.ranks.size());
  const double share = *rc::gen::inRange(10, 500) * 0.01;
  const double by_s = share * run.ranks[rank].predicted_compute_s;
  RC_PRE(by_s > 1.1 * kReportableShare * kPlannedStep_s);
  for (StepMetrics& step : run.steps) slow_down(step, rank, by_s);
  const RunHealth health = assess(run);
  RC_ASSERT(health.text.starts_with(run.ranks[rank].machine + " is the bottleneck"));

  AssessedRun scaled = run;
  constexpr double kUnit = 8;
  scaled.predicted_step_s *= kUnit;
  for (AssessedRank& each : scaled.ranks) each.predicted_compute_s *= kUnit;
  for (StepMetrics& step : scaled.steps) {
    step.step_s *= kUnit;
    for (auto& part : step.ranks) part.times.compute_s *= kUnit;
  }
  RC_ASSERT(assess(scaled) == health);

  AssessedRun turned = run;
  turned.links.clear();
  std::ranges::reverse(turned.ranks);
  for (StepMetrics& step : turned.steps) std::ranges::reverse(step.ranks);
  RC_ASSERT(assess(turned) == health);
}

// No rank is blamed that computes as planned.
RC_GTEST_PROP(VerdictProperty, BlamesNoRankThatIsOnPlan, ()) {
  AssessedRun run = as_planned();
  const double by_s = *rc::gen::inRange(0, 400) * 0.01;
  for (StepMetrics& step : run.steps) hold_up(step, by_s);
  RC_ASSERT(assess(run).text.find("bottleneck") == std::string::npos);
  RC_ASSERT((assess(run).level == HealthLevel::kGood) ==
            (by_s <= kReportableShare * kPlannedStep_s));
}

}  // namespace
}  // namespace motley
