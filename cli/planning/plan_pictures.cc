#include "cli/planning/plan_pictures.h"

#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "cli/output_file.h"
#include "figures/pages/plan_page.h"
#include "partitioner/report/explain.h"
#include "plan/rank_names.h"

namespace motley {
namespace {

Result<void> write_picture(const Arguments& arguments,
                           const char* option,
                           const std::string& text) {
  const std::string& path = arguments.value(option);
  MOTLEY_TRY(write_output(path, text));
  fmt::print(stderr, "wrote {}\n", path);
  return {};
}

}  // namespace

bool draws(const Arguments& arguments) {
  return arguments.has("svg") || arguments.has("html");
}

Result<void> write_plan_pictures(const Arguments& arguments,
                                 const PlanningInput& input,
                                 const Planning& planning,
                                 const PlanAnalysis& analysis,
                                 const std::optional<Plan>& other) {
  const Plan& plan = planning.plan;
  const DisplayedPlan shown{"A plan for " + arguments.operand(0), input, plan, analysis,
                            rank_names(plan)};
  if (arguments.has("svg")) {
    MOTLEY_ASSIGN(const std::string picture, plan_picture(shown));
    MOTLEY_TRY(write_picture(arguments, "svg", picture));
  }
  if (!arguments.has("html")) return {};
  MOTLEY_ASSIGN(std::string words, explain_in_full(input, planning, analysis));
  words += search_line(planning);
  if (!other) {
    MOTLEY_ASSIGN(const std::string page, plan_page(shown, words, std::nullopt));
    return write_picture(arguments, "html", page);
  }
  MOTLEY_ASSIGN(const PlanAnalysis others, analyse_step(input, *other));
  const DisplayedPlan beside{arguments.value("compare"), input, *other, others, rank_names(*other)};
  MOTLEY_ASSIGN(const std::string page, plan_page(shown, words, beside));
  return write_picture(arguments, "html", page);
}

}  // namespace motley
