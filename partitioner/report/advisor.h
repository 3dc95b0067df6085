// Advisor: finds the single changes of machines, links or settings that shorten the step most.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "partitioner/report/planning_input.h"

namespace motley {

// One tried change.
struct Advice {
  std::string change;  // in the syntax of partitioner/report/what_if.h
  std::string words;   // the same as text
  double step_s = 0;   // predicted with it
};

struct AdvisorReport {
  double step_s = 0;                   // predicted without changes
  std::vector<Advice> helpful;         // shortest step first; each saves at least 1 %
  std::vector<Advice> without_gain;    // in the order they were tried
  std::vector<std::string> not_tried;  // machines beyond the limit
};

// Plans again for each of a fixed list of changes: each machine's links 2.5 and 10 times as fast;
// each machine twice as fast; with twice the memory if that is short; and one more like it. In a
// large cluster only the first 16 machines that the plan uses are tried. Further changes are the
// codecs fp16 and bf16, if none is used and both ends were measured with them, and the fastest
// micro-batch size, if the planner chose the size. Errors of plan_or_remedy.
//
// `progress`, if any, is called before each plan with the numbers of tried and of all changes.
[[nodiscard]] Result<AdvisorReport> advise(
    const PlanningInput& input,
    const std::function<void(std::size_t tried, std::size_t of)>& progress = nullptr);

// The best ten as a table, the others in one line.
[[nodiscard]] std::string advice_text(const AdvisorReport& report);

}  // namespace motley
