#include "figures/pages/run_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "figures/figure_text.h"
#include "figures/html_page.h"
#include "figures/pages/plan_figure.h"
#include "figures/timeline.h"
#include "partitioner/report/advisor.h"
#include "plan/quantity_text.h"
#include "record/report_text.h"

namespace motley {
namespace {

constexpr double kMostOfTheSteps = 0.98;

void add_curves(HtmlPage& page, const RunCurves& shown) {
  page.section("Loss and speed");
  std::vector<Curve> losses = {{"loss, in training", shown.loss}};
  if (!shown.eval_loss.empty()) {
    losses.push_back({"held-out loss", shown.eval_loss, /*dots=*/true});
  }
  page.figure("the loss by step", curves(losses, {.title = "Loss", .unit = "nats"}));
  std::vector<Curve> steps = {{"measured", shown.step_s}};
  if (shown.predicted_step_s > 0 && !shown.step_s.empty()) {
    steps.push_back({"predicted",
                     {{shown.step_s.front().x, shown.predicted_step_s},
                      {shown.step_s.back().x, shown.predicted_step_s}}});
  }
  page.figure("the seconds of each step", curves(steps, {.title = "Seconds of a step",
                                                         .unit = "s",
                                                         .from_zero = true,
                                                         .share_in_scale = kMostOfTheSteps}));
  page.figure("tokens a second by step",
              curves({{"measured", shown.tokens_per_s}},
                     {.title = "Tokens a second", .unit = "1/s", .from_zero = true}));
}

Figure losses_figure(const std::vector<TimeShare>& losses) {
  constexpr double kBarX = 300;
  constexpr double kBarWidth = 700;
  constexpr double kRow = 26;
  FigurePen pen;
  double y = 8;
  for (const TimeShare& loss : losses) {
    const double share = std::clamp(loss.share, 0.0, 1.0);
    pen.text_in(kBarX - 20, {10, y + 12}, loss.cause);
    pen.box({kBarX, y, kBarWidth, 16}, "lane");
    pen.box({kBarX, y, share * kBarWidth, 16}, "used");
    pen.box({kBarX, y, kBarWidth, 16}, "frame");
    pen.text({kBarX + kBarWidth + 12, y + 12}, percent_text(loss.share));
    y += kRow;
  }
  return std::move(pen).finish(y + 4);
}

void add_bubble(HtmlPage& page, const DisplayedRun& run) {
  page.section("Time of the devices outside of layers");
  if (!run.losses.empty()) {
    page.figure("shares of the devices' time by cause", losses_figure(run.losses));
  }
  std::vector<CurvePoint> percent = run.curves.bubble;
  for (CurvePoint& point : percent) point.y *= 100;
  page.figure(
      "the share without computing by step",
      curves({{"without computing", std::move(percent)}},
             {.title = "Bubble by step", .unit = "%", .from_zero = true, .most_at_least = 1}));
}

void add_report(HtmlPage& page, const RunReport& report) {
  page.section("Predicted and measured");
  page.paragraph(fmt::format("Steps {} to {}, medians of {} steps.", report.first_step,
                             report.end.last_step, report.measured_steps));
  page.table(report_rows(report));
  page.table(report_link_rows(report));
}

void add_steps(HtmlPage& page, const DisplayedRun& run) {
  page.section("A step as measured and as simulated");
  double whole_s = end_of(run.simulated);
  if (run.traced) whole_s = std::max(whole_s, end_of(run.traced->spans));
  if (run.traced) {
    page.figure("a step as it was measured",
                timeline(run.traced->spans, run.traced->rank_names,
                         {.title = fmt::format("Step {}, as measured", run.traced->step),
                          .whole_s = whole_s}));
  } else {
    page.paragraph(run.not_traced);
  }
  if (run.simulated.empty()) return;
  page.figure("a step as it is simulated",
              timeline(run.simulated, run.rank_names,
                       {.title = "A step, as simulated", .whole_s = whole_s}));
}

void add_advice(HtmlPage& page, const DisplayedRun& run) {
  page.section("Most useful upgrades");
  if (!run.advised) return page.paragraph(run.not_advised);
  page.paragraph(run.step_s > 0
                     ? fmt::format("By the planner, which predicts a step of {} now; the run "
                                   "measured {}. If these differ much, the savings may too.",
                                   seconds_text(run.advised->step_s), seconds_text(run.step_s))
                     : "By the planner; the run has measured no step.");
  page.lines(advice_text(*run.advised));
}

}  // namespace

std::string run_page(const DisplayedRun& run) {
  HtmlPage page(run.name);
  page.headline(run.level, run.health);
  if (!run.advice.empty()) page.paragraph("Remedy: " + run.advice);
  page.table(run.facts);
  add_curves(page, run.curves);
  if (run.report) add_report(page, *run.report);
  add_bubble(page, run);
  if (run.plan) {
    page.section("The plan");
    page.figure("layers, load and memory of each device",
                plan_figure(*run.plan, run.rank_names, run.name));
  }
  add_steps(page, run);
  add_advice(page, run);
  if (run.events.size() > 1) {
    page.section("Events");
    page.table(run.events);
  }
  return page.text();
}

}  // namespace motley
