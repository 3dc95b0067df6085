// A run as a page to keep or to send: how it went, beside what its plan predicted. Pure.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/follow/run_report.h"
#include "partitioner/advise/advisor.h"
#include "partitioner/advise/plan_sketch.h"
#include "pictures/curves.h"
#include "plan/trace.h"
#include "plan/trace_file.h"

namespace motley {

// Values by step, thinned to what a page shows.
struct RunCurves {
  std::vector<CurvePoint> loss;
  std::vector<CurvePoint> eval_loss;
  std::vector<CurvePoint> tokens_per_s;
  std::vector<CurvePoint> step_s;
  std::vector<CurvePoint> bubble;  // share of the devices' time
  double predicted_step_s = 0;     // 0 = unknown
};

// A share of the devices' time, and what took it.
struct TimeShare {
  std::string cause;
  double share = 0;
};

// What is not known is left out of the page, or its place says why.
struct RunToShow {
  std::string name;
  std::string level;  // good, watch or bad
  std::string verdict;
  std::string advice;          // what to do about it; "" = nothing
  double step_s = 0;           // as measured; 0 = unknown
  std::vector<TextRow> facts;  // a name and a value each
  RunCurves curves;
  std::vector<TimeShare> losses;  // where the devices' time went that was not spent in layers
  std::optional<RunReport> report;
  std::optional<PlanSketch> plan;
  std::vector<TraceSpan> simulated;     // of that plan
  std::vector<std::string> rank_names;  // [Rank]
  std::optional<TracedStep> traced;
  std::string not_traced;  // why there is none
  std::optional<AdvisorReport> advised;
  std::string not_advised;      // why there is none
  std::vector<TextRow> events;  // with a head; the newest last
};

[[nodiscard]] std::string run_page(const RunToShow& run);

}  // namespace motley
