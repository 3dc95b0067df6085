// RunReport: the plan's predictions for a run and its measurements; report.json in the run's
// folder. Format: docs/formats/report.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "plan/device_kinds.h"
#include "record/held_out_result.h"
#include "record/run_end.h"

namespace motley {

struct PredictedAndMeasured {
  double predicted = 0;
  double measured = 0;  // 0 = unknown
};

// Times are medians over the steps, in seconds per step; a measured value of 0 is unknown.
struct RankReport {
  std::string name;  // "stage 1 (box)"
  std::string machine;
  std::string device;
  PredictedAndMeasured compute_s;      // all time except waiting
  double wait_s = 0;                   // measured
  double allreduce_wait_s = 0;         // the part of it in all-reduces of gradients
  PredictedAndMeasured memory_bytes;   // peak of the process
  PredictedAndMeasured sent_bytes;     // per step, to all peers
  std::string compute_dtype = "fp32";  // dtype of its matrix products
  double data_s = 0;                   // measured: the part of compute_s that reads samples
};

// The boundary between two chunks on different ranks.
struct LinkReport {
  int chunk = 0;  // before the boundary
  std::string from;
  std::string to;             // machines; "box+desktop" for a stage with replicas
  std::string codec;          // of both directions
  double payload_bytes = 0;   // per step, both directions, by the codec's bound
  double original_bytes = 0;  // the same without a codec
};

struct RunReport {
  std::int64_t first_step = 0;
  std::int64_t measured_steps = 0;         // the number of steps of the medians
  std::int64_t steps_without_targets = 0;  // these changed nothing
  std::string plan_hash;  // plan_hash_text(); "" = unknown, in reports of earlier versions
  PredictedAndMeasured step_s;
  std::vector<RankReport> ranks;  // [Rank]
  std::vector<LinkReport> links;
  std::vector<std::string> class_names;  // of the targets 0, 1, …; empty = the data names none
  std::optional<HeldOutResult> evaluation = {};  // the last one
  // The best evaluation, of runs that compare them.
  std::optional<BestEvaluation> best = {};
  RunEnd end;
};

[[nodiscard]] Json report_to_json(const RunReport& report);
// kCorrupt, naming the source, line and column, if the text is not a report of a supported version.
[[nodiscard]] Result<RunReport> parse_report(std::string_view text, const std::string& source);

// What all devices of the run can do.
[[nodiscard]] DeviceCapabilities capabilities_of(const RunReport& report);

}  // namespace motley
