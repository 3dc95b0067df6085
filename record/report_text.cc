#include "record/report_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/cluster.h"
#include "plan/plan.h"
#include "plan/quantity_text.h"
#include "record/held_out_result.h"

namespace motley {
namespace {

TextRow row_of(const std::string& name,
               const PredictedAndMeasured& pair,
               std::string (*text)(double)) {
  const bool known = pair.measured > 0;
  return {name, text(pair.predicted), known ? text(pair.measured) : "unknown",
          known ? change_text(pair.predicted, pair.measured) : ""};
}

// A process reports its host memory and not its device's.
TextRow memory_row_of(const RankReport& rank) {
  TextRow row = row_of("  memory", rank.memory_bytes, bytes_text);
  if (has_own_memory(rank.device)) row[2] = "not measured on devices";
  return row;
}

// "classes: 0 cat, 1 dog"
std::string classes_text(const std::vector<std::string>& names) {
  constexpr std::size_t kNamedMax = 20;
  std::string text = "classes:";
  for (std::size_t number = 0; number < std::min(names.size(), kNamedMax); ++number) {
    text += fmt::format("{} {} {}", number == 0 ? "" : ",", number, excerpt(names[number], 40));
  }
  if (names.size() > kNamedMax) text += fmt::format(", … {} in all", names.size());
  return text + "\n\n";
}

bool computes_in_other_dtype(const RunReport& report) {
  return std::ranges::any_of(
      report.ranks, [](const RankReport& rank) { return rank.compute_dtype != kFp32Dtype; });
}

}  // namespace

std::vector<TextRow> report_rows(const RunReport& report) {
  std::vector<TextRow> rows = {{"", "predicted", "measured", "off by"},
                               row_of("step", report.step_s, seconds_text)};
  for (const RankReport& rank : report.ranks) {
    rows.push_back(row_of(rank.name + " computes", rank.compute_s, seconds_text));
    if (rank.data_s > 0) rows.push_back({"  reads data", "", seconds_text(rank.data_s)});
    if (computes_in_other_dtype(report)) rows.push_back({"  products in", "", rank.compute_dtype});
    rows.push_back({"  waits", "", seconds_text(rank.wait_s)});
    if (rank.allreduce_wait_s > 0) {
      rows.push_back({"    for all-reduces", "", seconds_text(rank.allreduce_wait_s)});
    }
    rows.push_back(memory_row_of(rank));
    const bool sends = rank.sent_bytes.predicted > 0 || rank.sent_bytes.measured > 0;
    if (sends) rows.push_back(row_of("  sends a step", rank.sent_bytes, bytes_text));
  }
  return rows;
}

std::vector<TextRow> report_link_rows(const RunReport& report) {
  if (report.links.empty()) return {};
  std::vector<TextRow> rows = {{"link", "from", "to", "codec", "a step", "without codec"}};
  for (const LinkReport& link : report.links) {
    rows.push_back({fmt::format("{} → {}", link.chunk, link.chunk + 1), link.from, link.to,
                    link.codec, bytes_text(link.payload_bytes), bytes_text(link.original_bytes)});
  }
  return rows;
}

std::string report_text(const RunReport& report) {
  const std::string resumed =
      report.first_step > 1 ? fmt::format(" (resumed after step {})", report.first_step - 1) : "";
  const std::string without =
      report.steps_without_targets > 0
          ? fmt::format("; {} had no targets and did not update the parameters",
                        report.steps_without_targets)
          : "";
  std::string text = fmt::format("steps {} to {}{}; medians of {} steps{}\n\n", report.first_step,
                                 report.end.last_step, resumed, report.measured_steps, without);
  if (report.evaluation) {
    text = fmt::format("last evaluation, after step {}: {}\n", report.evaluation->step,
                       held_out_text(*report.evaluation)) +
           text;
  }
  if (report.best) text = fmt::format("best: {}\n", best_text(*report.best)) + text;
  if (!report.end.stopped_early.empty()) {
    text = fmt::format("stopped early: {}\n", report.end.stopped_early) + text;
  }
  if (!report.end.has_completed()) {
    text = fmt::format("ended early, with status {}: {}\n", report.end.status,
                       excerpt(report.end.what, RunEnd::kWhatBytesMax)) +
           text;
  }
  if (!capabilities_of(report).computes) {
    text += fmt::format("{}\n{}\n\n", kVirtualNotice, kSimulatedLinksNotice);
  }
  if (!report.class_names.empty()) text += classes_text(report.class_names);
  text += aligned_table(report_rows(report));
  const std::vector<TextRow> links = report_link_rows(report);
  return links.empty() ? text : text + '\n' + aligned_table(links);
}

}  // namespace motley
