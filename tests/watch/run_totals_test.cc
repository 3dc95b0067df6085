#include "watch/view/run_totals.h"

#include <cmath>

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>

namespace motley {
namespace {

StepMetrics done_at(std::int64_t step, double time_s) {
  StepMetrics metrics;
  metrics.step = step;
  metrics.outcome.tokens = 100;
  metrics.step_s = 0.5;
  metrics.wire_bytes = 30;
  metrics.time_s = time_s;
  metrics.ranks.resize(2);
  metrics.ranks[1].times.compute_s = 0.25;
  metrics.ranks[1].times.wait_s.of(WaitCause::kGradient) = 0.125;
  metrics.links = {{Rank{0}, Rank{1}, 20}, {Rank{1}, Rank{0}, 10}};
  return metrics;
}

TEST(RunTotals, SumsEveryStep) {
  RunTotals totals;
  for (int step = 1; step <= 4; ++step) totals.add(done_at(step, 1000 + step));
  const RunTotals::Totals& sums = totals.sums();
  EXPECT_EQ(sums.steps, 4);
  EXPECT_EQ(sums.tokens, 400);
  EXPECT_EQ(sums.step_s, 2);
  EXPECT_EQ(sums.sent_bytes, 120);
  ASSERT_EQ(sums.ranks.size(), 2U);
  EXPECT_EQ(sums.ranks[1].compute_s, 1);
  EXPECT_EQ(sums.ranks[1].wait_s.of(WaitCause::kGradient), 0.5);
  EXPECT_EQ(sums.link_bytes.at({Rank{0}, Rank{1}}), 80);
}

TEST(RunTotals, CountsStepsThatAreDoneAgainAndNoLineTwice) {
  RunTotals totals;
  for (int step = 1; step <= 10; ++step) totals.add(done_at(step, 1000 + step));
  // A resume truncated the file after step 6, and it is read again from the beginning.
  for (int step = 1; step <= 6; ++step) totals.add(done_at(step, 1000 + step));
  EXPECT_EQ(totals.sums().steps, 10);
  for (int step = 7; step <= 8; ++step) totals.add(done_at(step, 2000 + step));
  EXPECT_EQ(totals.sums().steps, 12);
}

TEST(RunTotals, WhatIsNotKnownAddsNothing) {
  RunTotals totals;
  StepMetrics metrics = done_at(1, 1001);
  metrics.step_s = std::nan("");
  metrics.ranks[1].times.compute_s = -1;
  totals.add(metrics);
  EXPECT_EQ(totals.sums().step_s, 0);
  EXPECT_EQ(totals.sums().ranks[1].compute_s, 0);
}

TEST(RunTotals, RemembersBoundedlyManySteps) {
  RunTotals totals;
  const auto all = static_cast<std::int64_t>(RunTotals::kRemembered) + 100;
  for (std::int64_t step = 1; step <= all; ++step) totals.add(done_at(step, 1000));
  totals.add(done_at(1, 1000));  // as from a file that is read again
  EXPECT_EQ(totals.sums().steps, all);
}

TEST(RunTotals, BoundsTheLinks) {
  RunTotals totals;
  StepMetrics metrics = done_at(1, 1001);
  metrics.links.clear();
  for (int to = 1; to < 4096; ++to) metrics.links.push_back({Rank{0}, Rank{to}, 1});
  for (int to = 1; to < 4096; ++to) metrics.links.push_back({Rank{to}, Rank{0}, 1});
  totals.add(metrics);
  EXPECT_EQ(totals.sums().link_bytes.size(), RunTotals::kLinksMax);
}

TEST(RunTotals, KnowsTheLastCheckpointAndCountsEvents) {
  RunTotals totals;
  totals.add(RunEvent{1000, 5, RunEventKind::kCheckpoint, "saved", ""});
  totals.add(RunEvent{1010, 10, RunEventKind::kCheckpoint, "saved", ""});
  totals.add(RunEvent{1011, 10, RunEventKind::kWarning, "slow", ""});
  EXPECT_EQ(totals.sums().saved->first, 10);
  EXPECT_EQ(totals.sums().events.at(RunEventKind::kCheckpoint), 2);
  totals.forget_events();
  EXPECT_TRUE(totals.sums().events.empty());
}

// However often a run goes back, no total decreases, and each executed step counts once.
RC_GTEST_PROP(CountersOfARun, NeverFallAndMissNothing, ()) {
  RunTotals totals;
  std::vector<StepMetrics> file;
  std::int64_t done = 0;
  double clock_s = 1000;
  for (int sessions = *rc::gen::inRange(1, 6); sessions > 0; --sessions) {
    file.resize(*rc::gen::inRange<std::size_t>(0, file.size() + 1));
    for (const StepMetrics& line : file) totals.add(line);
    for (int steps = *rc::gen::inRange(0, 10); steps > 0; --steps) {
      const std::int64_t before = totals.sums().steps;
      file.push_back(done_at(static_cast<std::int64_t>(file.size()) + 1, clock_s += 1));
      totals.add(file.back());
      RC_ASSERT(totals.sums().steps >= before);
      ++done;
    }
    RC_ASSERT(totals.sums().steps == done);
  }
}

}  // namespace
}  // namespace motley
