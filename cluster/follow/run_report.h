// RunReport: what the plan predicted of a run beside what the run measured; report.json in the
// run's folder. Format: docs/formats/report.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "partitioner/advise/text_table.h"

namespace motley {

struct PredictedAndMeasured {
  double predicted = 0;
  double measured = 0;  // 0 = unknown
};

// Times are medians over the steps, in seconds of a step; what is measured of 0 is unknown.
struct RankReport {
  std::string name;  // "stage 1 (box)"
  std::string machine;
  std::string device;
  PredictedAndMeasured compute_s;     // all but waiting
  double wait_s = 0;                  // measured
  double sum_wait_s = 0;              // of that, for sums of gradients
  PredictedAndMeasured memory_bytes;  // peak of the process
  PredictedAndMeasured sent_bytes;    // a step, to all peers
  std::string numbers = "fp32";       // that its products were computed in
};

// The boundary between two chunks on different ranks.
struct LinkReport {
  int chunk = 0;  // before the boundary
  std::string from;
  std::string to;             // machines; "box+desktop" where a stage is shared
  std::string codec;          // of both directions
  double payload_bytes = 0;   // of a step, both directions, as the codec bounds them
  double original_bytes = 0;  // the same without a codec
};

// How a run ended that did not come to its end.
inline constexpr std::size_t kEarlyEndBytesMax = 400;  // shown and kept of `what`

struct EarlyEnd {
  int status = 0;    // exit status
  std::string what;  // the error's first line
};

struct RunReport {
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  std::int64_t measured_steps = 0;         // of which the medians are
  std::int64_t steps_without_targets = 0;  // that changed nothing
  std::string plan_hash;                   // plan_hash_text(); "" = not known, of earlier versions
  PredictedAndMeasured step_s;
  std::vector<RankReport> ranks;  // [Rank]
  std::vector<LinkReport> links;
  std::optional<EarlyEnd> ended;  // nothing: it ended well
};

[[nodiscard]] Json report_to_json(const RunReport& report);
// kCorrupt, naming the source, line and column, when the text is not a report of a version we read.
[[nodiscard]] Result<RunReport> parse_report(std::string_view text, const std::string& source);

// Rows of tables for people: the step and each rank, predicted beside measured, and the links, none
// where there are none.
[[nodiscard]] std::vector<TextRow> report_rows(const RunReport& report);
[[nodiscard]] std::vector<TextRow> report_link_rows(const RunReport& report);
// Beside every time of a rehearsal.
inline constexpr const char* kRehearsedLinksNotice =
    "what is sent goes over the links that are there, not at the speeds that the cluster file "
    "gives";
// Whether it was a rehearsal, on virtual devices.
[[nodiscard]] bool is_virtual(const RunReport& report);

// The same as text, with how the run ended.
[[nodiscard]] std::string report_text(const RunReport& report);

}  // namespace motley
