// The planning time for large clusters, the gap between each plan and its lower bound, and the
// part of the gap caused by granularity.
//
//   planner_scale [CASE]   CASE: 16x100, 64x4x200, 64x200, 256x1000 (default: all in turn)
#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "base/clock.h"
#include "bench/scale_cases.h"

namespace motley {
namespace {

int run(const ScaleCase& c) {
  const ScaleProblem problem = make_problem(c);
  const double start_s = now_s();
  const auto planning =
      plan_in_full(problem.model, problem.cluster, problem.profile, problem.options);
  const double took_s = now_s() - start_s;
  if (!planning.ok()) {
    std::fprintf(stderr, "%s\n", describe(planning.error()).c_str());
    return 1;
  }
  const PlanBounds& b = planning->bounds;
  const auto percent = [](double part, double whole) { return 100 * (part / whole - 1); };
  fmt::print(
      "{:9} {:3} of {:3} machines used, {}, {:.2f} s to plan\n"
      "          least period {:.4f} s, bound {:.4f} s (+{:.4f} %{})\n"
      "          above the fluid bound of {:.4f} s: {:.2f} %, of which granularity explains {:.2f} "
      "%\n"
      "          step {:.3f} s simulated, {:.3f} s estimated, bound {:.3f} s (+{:.2f} %), period "
      "{:.4f} s\n",
      c.name, planning->plan.rank_count(), c.machines, b.method, took_s, b.least_period_s,
      b.period_bound_s, percent(b.least_period_s, b.period_bound_s),
      b.proven ? ", proven optimal" : "", b.fluid_period_s,
      percent(b.least_period_s, b.fluid_period_s),
      percent(b.granularity_period_s, b.fluid_period_s), planning->plan.predicted_step_s,
      b.estimate_s, b.step_bound_s, percent(b.estimate_s, b.step_bound_s), b.period_s);
  return 0;
}

}  // namespace
}  // namespace motley

int main(int argc, char** argv) {
  for (const motley::ScaleCase& c : motley::kScaleCases) {
    if (argc > 1 && std::string(argv[1]) != c.name) continue;
    if (motley::run(c) != 0) return 1;
  }
  return 0;
}
