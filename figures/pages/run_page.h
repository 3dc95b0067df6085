// A run as a self-contained page: its measurements beside the predictions of its plan. Pure.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text/text_table.h"
#include "figures/curves.h"
#include "partitioner/report/advisor.h"
#include "partitioner/report/plan_sketch.h"
#include "plan/trace.h"
#include "record/run_report.h"
#include "record/trace_file.h"

namespace motley {

// Values by step, thinned for the page.
struct RunCurves {
  std::vector<CurvePoint> loss;
  std::vector<CurvePoint> eval_loss;
  std::vector<CurvePoint> tokens_per_s;
  std::vector<CurvePoint> step_s;
  std::vector<CurvePoint> bubble;  // share of the devices' time
  double predicted_step_s = 0;     // 0 = unknown
};

// A share of the devices' time, with its cause.
struct TimeShare {
  std::string cause;
  double share = 0;
};

// Unknown parts are left out of the page or replaced by the reason.
struct DisplayedRun {
  std::string name;
  std::string level;  // good, watch or bad
  std::string health;
  std::string advice;          // what to do about it; "" = nothing
  double step_s = 0;           // measured; 0 = unknown
  std::vector<TextRow> facts;  // pairs of name and value
  RunCurves curves;
  std::vector<TimeShare> losses;  // the devices' time outside of layers
  std::optional<RunReport> report;
  std::optional<PlanSketch> plan;
  std::vector<TraceSpan> simulated;     // of `plan`
  std::vector<std::string> rank_names;  // [Rank]
  std::optional<TracedStep> traced;
  std::string not_traced;  // the reason if `traced` is empty
  std::optional<AdvisorReport> advised;
  std::string not_advised;      // the reason if `advised` is empty
  std::vector<TextRow> events;  // with a header row; the newest last
};

[[nodiscard]] std::string run_page(const DisplayedRun& run);

}  // namespace motley
