#include "cli/planning/plan_changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <vector>

#include "base/process/progress_line.h"
#include "cli/inputs.h"
#include "partitioner/report/advisor.h"
#include "partitioner/report/explain.h"
#include "partitioner/report/plan_comparison.h"
#include "partitioner/report/remedy.h"
#include "partitioner/report/what_if.h"

namespace motley {
namespace {

Json advice_to_json(const std::vector<Advice>& list) {
  Json json = Json::array();
  for (const Advice& advice : list) {
    json.push_back({{"change", advice.change}, {"step_s", advice.step_s}});
  }
  return json;
}

}  // namespace

void print_planned(const Arguments& arguments, const Json& json, const std::string& text) {
  std::fputs(arguments.has("json") ? (json.dump(2) + "\n").c_str() : text.c_str(), stdout);
}

Result<void> show_what_if(const Arguments& arguments, const PlanningInput& input) {
  const std::vector<std::string> changes = arguments.values("what-if");
  MOTLEY_ASSIGN(const PlanningInput changed, apply_changes(input, changes));
  ProgressLine line("planning without the change");
  const Result<Plan> now = make_plan(input);
  line.say("planning with the change");
  MOTLEY_ASSIGN(const Planning planning, plan_or_remedy(changed));
  line.clear();
  const Plan& then = planning.plan;
  const std::vector<std::string> given_up = dropped_pins(input, changed);
  Json json{{"changes", changes}, {"given_up_pins", given_up}, {"then", plan_to_json(then)}};
  std::string text = fmt::format("what if {}\n\n", fmt::join(changes, " and "));
  if (!given_up.empty()) {
    text += fmt::format("pins dropped with the machine: {}\n\n", fmt::join(given_up, "; "));
  }
  if (now.ok()) {
    json["now"] = plan_to_json(*now);
    text += compare_plans(*now, then, input.model);
  } else {
    MOTLEY_ASSIGN(const std::string explanation,
                  explain_plan(then, changed.model, changed.cluster, changed.profile));
    text += "now: " + now.error().what + "\nthen:\n" + explanation;
  }
  print_planned(arguments, json, text);
  return {};
}

Result<void> show_advice(const Arguments& arguments, const PlanningInput& input) {
  ProgressLine line("planning without upgrades");
  const auto report_progress = [&line](std::size_t tried, std::size_t of) {
    line.say(fmt::format("planning with each upgrade: tried {} of {}", tried, of));
  };
  MOTLEY_ASSIGN(const AdvisorReport report, advise(input, report_progress));
  line.clear();
  const Json json{{"step_s", report.step_s},
                  {"helpful", advice_to_json(report.helpful)},
                  {"without_gain", advice_to_json(report.without_gain)}};
  const std::string imagined =
      simulated_devices_text(input.cluster, profiled_precision(input.profile));
  print_planned(
      arguments, json,
      (imagined.empty() ? "" : fmt::format("virtual: {}\n", imagined)) + advice_text(report));
  return {};
}

}  // namespace motley
