#include "figures/pages/run_page.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/figures/markup.h"

namespace motley {
namespace {

using testing::HasSubstr;
using testing::Not;

DisplayedRun whole_run() {
  DisplayedRun run{.name = "Run runs/<gpt>",
                   .level = "watch",
                   .health = "box is the bottleneck: +9 % over plan",
                   .advice = "plan again",
                   .facts = {{"run", ""}, {"step", "2 of 10"}},
                   .losses = {{"unequal work", 0.25}},
                   .events = {{"when", "step", "what"}, {"2026-11-24", "2", "saved & sound"}}};
  run.step_s = 0.4;
  run.curves = {.loss = {{1, 5}, {2, 4}},
                .eval_loss = {{2, 4.5}},
                .tokens_per_s = {{1, 100}, {2, 110}},
                .step_s = {{1, 0.5}, {2, 0.4}},
                .bubble = {{1, 0.2}, {2, std::numeric_limits<double>::quiet_NaN()}},
                .predicted_step_s = 0.45};
  run.report.emplace();
  run.report->end.last_step = 2;
  run.report->step_s = {0.45, 0.4};
  run.report->ranks.push_back({.name = "stage 0 (box)", .machine = "box", .device = "cpu"});
  run.plan.emplace();
  run.plan->step_s = 0.45;
  run.plan->layer_count = 4;
  run.plan->ranks.push_back({.machine = "box", .device = "cpu", .runs = {{0, 4, false}}});
  run.rank_names = {"stage 0 (box)"};
  run.simulated = {{{0}, "compute", "F0.0", 0, 0.4}};
  run.traced = TracedStep{7, {{{0}, "compute", "F0.0", 0, 0.5}}, {"stage 0 (box)"}};
  run.advised = AdvisorReport{.step_s = 0.45,
                              .helpful = {{"machine.box.speed=2", "box twice as fast", 0.25}},
                              .without_gain = {},
                              .not_tried = {}};
  return run;
}

TEST(RunPage, TellsAllOfARun) {
  const std::string page = run_page(whole_run());
  EXPECT_TRUE(is_well_formed(page)) << page;
  for (const char* words :
       {"Run runs/&lt;gpt&gt;", "headline watch", "box is the bottleneck: +9 % over plan",
        "Remedy: plan again", "a step of 450.00 ms now; the run measured 400.00 ms",
        "held-out loss", "predicted", "unequal work", "stage 0 (box) computes",
        "Step 7, as measured", "A step, as simulated", "box twice as fast", "saved &amp; sound"}) {
    EXPECT_THAT(page, HasSubstr(words));
  }
  for (const char* no : {"<script", "src=", "href=", "nan"}) EXPECT_THAT(page, Not(HasSubstr(no)));
}

TEST(RunPage, AScaleHasNoExponents) {
  DisplayedRun run = whole_run();
  run.curves.bubble = {{1, 2e-7}, {2, 4e-7}};
  EXPECT_THAT(run_page(run), Not(HasSubstr("e-0")));
}

TEST(RunPage, SaysWhatIsNotThere) {
  DisplayedRun run{.name = "lost", .level = "bad", .health = "it was lost"};
  run.not_traced = "no step was recorded";
  run.not_advised = "there is no plan";
  const std::string page = run_page(run);
  EXPECT_TRUE(is_well_formed(page)) << page;
  for (const char* words : {"no step was recorded", "there is no plan", "no data"}) {
    EXPECT_THAT(page, HasSubstr(words));
  }
}

}  // namespace
}  // namespace motley
