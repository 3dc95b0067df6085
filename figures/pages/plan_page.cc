#include "figures/pages/plan_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "figures/html_page.h"
#include "figures/pages/plan_figure.h"
#include "figures/timeline.h"
#include "partitioner/report/explain.h"
#include "partitioner/report/plan_comparison.h"
#include "partitioner/report/plan_sketch.h"

namespace motley {
namespace {

Figure simulated_step(const DisplayedPlan& shown, double whole_s) {
  return timeline(shown.analysis.spans, shown.rank_names,
                  {.title = "A step, as simulated: time goes to the right", .whole_s = whole_s});
}

Result<Figure> drawn(const DisplayedPlan& shown) {
  MOTLEY_ASSIGN(const PlanSketch sketch, sketch_plan(shown.input, shown.plan, shown.analysis));
  return plan_figure(sketch, shown.rank_names, shown.name);
}

std::vector<TextRow> with_head(TextRow head, const std::vector<TextRow>& rows) {
  std::vector<TextRow> table = {std::move(head)};
  table.insert(table.end(), rows.begin(), rows.end());
  return table;
}

}  // namespace

Result<std::string> plan_picture(const DisplayedPlan& shown) {
  MOTLEY_ASSIGN(const Figure figure, drawn(shown));
  const auto contribution = contribution_rows(shown.analysis, shown.plan.predicted_step_s);
  return svg_file(shown.name,
                  {figure, simulated_step(shown, 0), contribution_figure(contribution)});
}

Result<std::string> plan_page(const DisplayedPlan& shown,
                              const std::string& explanation,
                              const std::optional<DisplayedPlan>& other) {
  HtmlPage page(shown.name);
  if (other) {
    page.section("Beside " + other->name);
    page.table(
        comparison_rows(other->plan, shown.plan, shown.input.model, {other->name, shown.name}));
  }
  const double whole_s =
      std::max(end_of(shown.analysis.spans), other ? end_of(other->analysis.spans) : 0);
  for (const DisplayedPlan* plan : {&shown, other ? &*other : nullptr}) {
    if (plan == nullptr) continue;
    page.section(plan == &shown ? "The plan" : other->name);
    MOTLEY_ASSIGN(const Figure figure, drawn(*plan));
    page.figure("layers, load and memory of each device", figure);
    page.figure("a step as it is simulated", simulated_step(*plan, whole_s));
  }
  const auto contribution = contribution_rows(shown.analysis, shown.plan.predicted_step_s);
  if (!contribution.empty()) {
    page.section("Gain of each machine");
    page.table(with_head({"", "the best plan then"}, contribution));
  }
  page.section("Description");
  page.lines(explanation);
  return page.text();
}

}  // namespace motley
