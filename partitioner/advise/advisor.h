// Advisor: which single change of the machines, links or settings would shorten the step most.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "partitioner/advise/planning_input.h"

namespace motley {

// One change that was tried.
struct Advice {
  std::string change;  // as partitioner/advise/what_if.h reads it
  std::string words;   // the same for people
  double step_s = 0;   // predicted with it
};

struct AdvisorReport {
  double step_s = 0;                   // predicted as things are
  std::vector<Advice> helpful;         // shortest step first; each saves at least 1 %
  std::vector<Advice> without_gain;    // in the order they were tried
  std::vector<std::string> not_tried;  // machines beyond the number that is tried
};

// Plans again for each of a fixed list: each machine's links 2.5 and 10 times as fast, each machine
// twice as fast, with twice the memory where that is short, and one more like it, in a large
// cluster only for the first 16 machines that the plan uses; the codecs fp16 and bf16 where none is
// used and both ends were measured with them; and the fastest micro-batch where its size was left
// to the planner. Errors of plan_or_remedy.
//
// `tells`, if any, is called before each plan that is made with a change: how many were tried, of
// how many.
[[nodiscard]] Result<AdvisorReport> advise(
    const PlanningInput& input,
    const std::function<void(std::size_t tried, std::size_t of)>& tells = nullptr);

// The best ten as a table, the rest in a line.
[[nodiscard]] std::string advice_text(const AdvisorReport& report);

}  // namespace motley
