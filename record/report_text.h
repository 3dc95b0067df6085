// The text of a run's report: predictions beside measurements.
#pragma once

#include <string>
#include <vector>

#include "base/text/text_table.h"
#include "record/run_report.h"

namespace motley {

// A notice for the times of a simulated run.
inline constexpr const char* kSimulatedLinksNotice =
    "what is sent goes over the links that are there, not at the speeds that the cluster file "
    "gives";

// Table rows: the step and each rank, predicted beside measured; and the links, empty if there are
// none.
[[nodiscard]] std::vector<TextRow> report_rows(const RunReport& report);
[[nodiscard]] std::vector<TextRow> report_link_rows(const RunReport& report);

// The same as text, with the reason if the run ended early.
[[nodiscard]] std::string report_text(const RunReport& report);

}  // namespace motley
