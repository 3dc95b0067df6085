#include "cluster/run_record/run_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/json_fields.h"
#include "plan/cluster.h"
#include "plan/limits.h"
#include "plan/plan.h"
#include "plan/quantity_text.h"

namespace motley {
namespace {

constexpr const char* kFormat = "motley.report";
constexpr int kVersion = 1;
constexpr std::size_t kLinksMax = 65536;
constexpr std::int64_t kStepsMax = std::int64_t{1} << 52;
constexpr double kSecondsMax = 1e9;
constexpr double kReportedBytesMax = 1e18;
constexpr std::size_t kNameBytesMax = 256;
constexpr const char* kMachinesOthers = "._-+";

Json pair_to_json(const PredictedAndMeasured& pair) {
  return {{"predicted", pair.predicted}, {"measured", pair.measured}};
}

Result<PredictedAndMeasured> pair_from(const JsonFields& fields, const char* key, double max) {
  MOTLEY_ASSIGN(const JsonFields pair, fields.member(key));
  PredictedAndMeasured values;
  MOTLEY_ASSIGN(values.predicted, pair.quantity("predicted", max));
  MOTLEY_ASSIGN(values.measured, pair.quantity("measured", max));
  return values;
}

Result<RankReport> rank_from(const JsonFields& fields) {
  RankReport rank;
  MOTLEY_ASSIGN(const std::string name, fields.text("name"));
  rank.name = excerpt(name, kNameBytesMax);  // printed on a terminal
  MOTLEY_ASSIGN(rank.machine, fields.word("machine", kMachineNameOthers));
  MOTLEY_ASSIGN(rank.device, fields.word("device", kDeviceNameOthers));
  if (fields.has("numbers")) {
    MOTLEY_ASSIGN(rank.compute_dtype, fields.word("numbers", ""));
  }
  MOTLEY_ASSIGN(rank.compute_s, pair_from(fields, "compute_s", kSecondsMax));
  MOTLEY_ASSIGN(rank.wait_s, fields.quantity("wait_s", kSecondsMax));
  if (fields.has("sum_wait_s")) {
    MOTLEY_ASSIGN(rank.allreduce_wait_s, fields.quantity("sum_wait_s", kSecondsMax));
  }
  MOTLEY_ASSIGN(rank.memory_bytes, pair_from(fields, "memory_bytes", kReportedBytesMax));
  MOTLEY_ASSIGN(rank.sent_bytes, pair_from(fields, "sent_bytes", kReportedBytesMax));
  return rank;
}

Result<LinkReport> link_from(const JsonFields& fields) {
  LinkReport link;
  MOTLEY_ASSIGN(const std::int64_t chunk, fields.integer("chunk", 0, kLinksMax));
  link.chunk = static_cast<int>(chunk);
  MOTLEY_ASSIGN(link.from, fields.word("from", kMachinesOthers));
  MOTLEY_ASSIGN(link.to, fields.word("to", kMachinesOthers));
  MOTLEY_ASSIGN(link.codec, fields.word("codec", "._-|()"));
  MOTLEY_ASSIGN(link.payload_bytes, fields.quantity("payload_bytes", kReportedBytesMax));
  MOTLEY_ASSIGN(link.original_bytes, fields.quantity("original_bytes", kReportedBytesMax));
  return link;
}

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

bool computes_in_other_dtype(const RunReport& report) {
  return std::ranges::any_of(
      report.ranks, [](const RankReport& rank) { return rank.compute_dtype != kFp32Dtype; });
}

}  // namespace

bool is_virtual(const RunReport& report) {
  return std::ranges::any_of(report.ranks,
                             [](const RankReport& rank) { return is_virtual_device(rank.device); });
}

Json report_to_json(const RunReport& report) {
  Json ranks = Json::array();
  for (const RankReport& rank : report.ranks) {
    Json json = {{"name", rank.name},
                 {"machine", rank.machine},
                 {"device", rank.device},
                 {"compute_s", pair_to_json(rank.compute_s)},
                 {"wait_s", rank.wait_s},
                 {"memory_bytes", pair_to_json(rank.memory_bytes)},
                 {"sent_bytes", pair_to_json(rank.sent_bytes)}};
    if (rank.compute_dtype != kFp32Dtype) json["numbers"] = rank.compute_dtype;
    if (rank.allreduce_wait_s > 0) json["sum_wait_s"] = rank.allreduce_wait_s;
    ranks.push_back(std::move(json));
  }
  Json links = Json::array();
  for (const LinkReport& link : report.links) {
    links.push_back({{"chunk", link.chunk},
                     {"from", link.from},
                     {"to", link.to},
                     {"codec", link.codec},
                     {"payload_bytes", link.payload_bytes},
                     {"original_bytes", link.original_bytes}});
  }
  Json json = {{"format", kFormat},
               {"version", kVersion},
               {"first_step", report.first_step},
               {"last_step", report.last_step},
               {"measured_steps", report.measured_steps},
               {"step_s", pair_to_json(report.step_s)},
               {"ranks", std::move(ranks)},
               {"links", std::move(links)}};
  if (!report.plan_hash.empty()) json["plan_hash"] = report.plan_hash;
  if (report.steps_without_targets > 0) {
    json["steps_without_targets"] = report.steps_without_targets;
  }
  if (report.ended)
    json["ended"] = {{"status", report.ended->status}, {"what", report.ended->what}};
  return json;
}

Result<RunReport> parse_report(std::string_view text, const std::string& source) {
  MOTLEY_ASSIGN(const Json json, parse_json(text, source));
  const JsonSource place(source, text);
  const JsonFields fields(json, place, ErrorCode::kCorrupt);
  MOTLEY_TRY(fields.header(kFormat, kVersion));
  RunReport report;
  MOTLEY_ASSIGN(report.first_step, fields.integer("first_step", 0, kStepsMax));
  MOTLEY_ASSIGN(report.last_step, fields.integer("last_step", 0, kStepsMax));
  MOTLEY_ASSIGN(report.measured_steps, fields.integer("measured_steps", 0, kStepsMax));
  MOTLEY_ASSIGN(report.step_s, pair_from(fields, "step_s", kSecondsMax));
  MOTLEY_ASSIGN(const auto ranks, fields.items("ranks", 1, kRanksMax));
  for (const JsonFields& item : ranks) {
    MOTLEY_ASSIGN(RankReport rank, rank_from(item));
    report.ranks.push_back(std::move(rank));
  }
  MOTLEY_ASSIGN(const auto links, fields.items("links", 0, kLinksMax));
  for (const JsonFields& item : links) {
    MOTLEY_ASSIGN(LinkReport link, link_from(item));
    report.links.push_back(std::move(link));
  }
  if (fields.has("steps_without_targets")) {
    MOTLEY_ASSIGN(report.steps_without_targets,
                  fields.integer("steps_without_targets", 0, kStepsMax));
  }
  if (fields.has("plan_hash")) {
    MOTLEY_ASSIGN(report.plan_hash, fields.word("plan_hash", ""));
  }
  if (json.contains("ended")) {
    MOTLEY_ASSIGN(const JsonFields ended, fields.member("ended"));
    report.ended.emplace();
    MOTLEY_ASSIGN(const std::int64_t status, ended.integer("status", 1, 255));
    report.ended->status = static_cast<int>(status);
    MOTLEY_ASSIGN(report.ended->what, ended.text("what"));
  }
  return report;
}

std::vector<TextRow> report_rows(const RunReport& report) {
  std::vector<TextRow> rows = {{"", "predicted", "measured", "off by"},
                               row_of("step", report.step_s, seconds_text)};
  for (const RankReport& rank : report.ranks) {
    rows.push_back(row_of(rank.name + " computes", rank.compute_s, seconds_text));
    if (computes_in_other_dtype(report)) rows.push_back({"  products in", "", rank.compute_dtype});
    rows.push_back({"  waits", "", seconds_text(rank.wait_s)});
    if (rank.allreduce_wait_s > 0) {
      rows.push_back({"    for sums", "", seconds_text(rank.allreduce_wait_s)});
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
                                 report.last_step, resumed, report.measured_steps, without);
  if (report.ended) {
    text = fmt::format("ended early, with status {}: {}\n", report.ended->status,
                       excerpt(report.ended->what, kEarlyTerminationBytesMax)) +
           text;
  }
  if (is_virtual(report)) {
    text += fmt::format("{}\n{}\n\n", kVirtualNotice, kSimulatedLinksNotice);
  }
  text += aligned_table(report_rows(report));
  const std::vector<TextRow> links = report_link_rows(report);
  return links.empty() ? text : text + '\n' + aligned_table(links);
}

}  // namespace motley
