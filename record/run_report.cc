#include "record/run_report.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/json.h"
#include "base/json/json_fields.h"
#include "plan/group_limits.h"
#include "plan/plan.h"

namespace motley {
namespace {

constexpr const char* kReportFormat = "motley.report";
constexpr int kReportVersion = 1;
constexpr std::size_t kReportLinksMax = 65536;
constexpr std::size_t kReportClassesMax = 65536;
constexpr std::int64_t kReportStepsMax = std::int64_t{1} << 52;
constexpr double kReportSecondsMax = 1e9;
constexpr double kReportedBytesMax = 1e18;
constexpr std::size_t kReportNameBytesMax = 256;
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
  rank.name = excerpt(name, kReportNameBytesMax);  // printed on a terminal
  MOTLEY_ASSIGN(rank.machine, fields.word("machine", kMachineNameOthers));
  MOTLEY_ASSIGN(rank.device, fields.word("device", kDeviceNameOthers));
  if (fields.has("numbers")) {
    MOTLEY_ASSIGN(rank.compute_dtype, fields.word("numbers", ""));
  }
  MOTLEY_ASSIGN(rank.compute_s, pair_from(fields, "compute_s", kReportSecondsMax));
  MOTLEY_ASSIGN(rank.wait_s, fields.quantity("wait_s", kReportSecondsMax));
  if (fields.has("data_s")) {
    MOTLEY_ASSIGN(rank.data_s, fields.quantity("data_s", kReportSecondsMax));
  }
  if (fields.has("sum_wait_s")) {
    MOTLEY_ASSIGN(rank.allreduce_wait_s, fields.quantity("sum_wait_s", kReportSecondsMax));
  }
  MOTLEY_ASSIGN(rank.memory_bytes, pair_from(fields, "memory_bytes", kReportedBytesMax));
  MOTLEY_ASSIGN(rank.sent_bytes, pair_from(fields, "sent_bytes", kReportedBytesMax));
  return rank;
}

Result<LinkReport> link_from(const JsonFields& fields) {
  LinkReport link;
  MOTLEY_ASSIGN(const std::int64_t chunk, fields.integer("chunk", 0, kReportLinksMax));
  link.chunk = static_cast<int>(chunk);
  MOTLEY_ASSIGN(link.from, fields.word("from", kMachinesOthers));
  MOTLEY_ASSIGN(link.to, fields.word("to", kMachinesOthers));
  MOTLEY_ASSIGN(link.codec, fields.word("codec", "._-|()"));
  MOTLEY_ASSIGN(link.payload_bytes, fields.quantity("payload_bytes", kReportedBytesMax));
  MOTLEY_ASSIGN(link.original_bytes, fields.quantity("original_bytes", kReportedBytesMax));
  return link;
}

Json evaluation_to_json(const HeldOutResult& result) {
  Json json = {{"step", result.step}, {"eval_loss", result.loss}};
  const auto add = [&json](const char* key, const std::optional<double>& value) {
    if (value && std::isfinite(*value)) json[key] = *value;
  };
  add("eval_perplexity", result.perplexity);
  add("eval_accuracy", result.accuracy);
  add("eval_top5_accuracy", result.top5_accuracy);
  return json;
}

Result<HeldOutResult> evaluation_from(const JsonFields& fields) {
  const auto find = [&fields](const char* key) -> Result<std::optional<double>> {
    if (!fields.has(key)) return std::optional<double>();
    MOTLEY_ASSIGN(const double value, fields.quantity(key, std::numeric_limits<double>::max()));
    return std::optional(value);
  };
  HeldOutResult result;
  MOTLEY_ASSIGN(result.step, fields.integer("step", 1, kReportStepsMax));
  const Json loss = fields.value().value("eval_loss", Json());
  if (!loss.is_number()) return fields.bad("eval_loss", "a number was expected");
  result.loss = loss.get<double>();
  MOTLEY_ASSIGN(result.perplexity, find("eval_perplexity"));
  MOTLEY_ASSIGN(result.accuracy, find("eval_accuracy"));
  MOTLEY_ASSIGN(result.top5_accuracy, find("eval_top5_accuracy"));
  return result;
}

}  // namespace

DeviceCapabilities capabilities_of(const RunReport& report) {
  DeviceCapabilities common;
  for (const RankReport& rank : report.ranks) common = common & capabilities_of(rank.device);
  return common;
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
    if (rank.data_s > 0) json["data_s"] = rank.data_s;
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
  Json json = {{"format", kReportFormat},
               {"version", kReportVersion},
               {"first_step", report.first_step},
               {"last_step", report.end.last_step},
               {"measured_steps", report.measured_steps},
               {"step_s", pair_to_json(report.step_s)},
               {"ranks", std::move(ranks)},
               {"links", std::move(links)}};
  if (!report.plan_hash.empty()) json["plan_hash"] = report.plan_hash;
  if (report.steps_without_targets > 0) {
    json["steps_without_targets"] = report.steps_without_targets;
  }
  if (!report.class_names.empty()) json["classes"] = report.class_names;
  if (report.evaluation && std::isfinite(report.evaluation->loss)) {
    json["evaluation"] = evaluation_to_json(*report.evaluation);
  }
  if (report.best) {
    json["best"] = {{"step", report.best->step}, {"eval_loss", report.best->loss}};
  }
  if (!report.end.stopped_early.empty()) json["stopped_early"] = report.end.stopped_early;
  if (!report.end.has_completed()) {
    json["ended"] = {{"status", report.end.status}, {"what", report.end.what}};
  }
  return json;
}

Result<RunReport> parse_report(std::string_view text, const std::string& source) {
  MOTLEY_ASSIGN(const Json json, parse_json(text, source));
  const JsonSource place(source, text);
  const JsonFields fields(json, place, ErrorCode::kCorrupt);
  MOTLEY_TRY(fields.header(kReportFormat, kReportVersion));
  RunReport report;
  MOTLEY_ASSIGN(report.first_step, fields.integer("first_step", 0, kReportStepsMax));
  MOTLEY_ASSIGN(report.end.last_step, fields.integer("last_step", 0, kReportStepsMax));
  MOTLEY_ASSIGN(report.measured_steps, fields.integer("measured_steps", 0, kReportStepsMax));
  MOTLEY_ASSIGN(report.step_s, pair_from(fields, "step_s", kReportSecondsMax));
  MOTLEY_ASSIGN(const auto ranks, fields.items("ranks", 1, kRanksMax));
  for (const JsonFields& item : ranks) {
    MOTLEY_ASSIGN(RankReport rank, rank_from(item));
    report.ranks.push_back(std::move(rank));
  }
  MOTLEY_ASSIGN(const auto links, fields.items("links", 0, kReportLinksMax));
  for (const JsonFields& item : links) {
    MOTLEY_ASSIGN(LinkReport link, link_from(item));
    report.links.push_back(std::move(link));
  }
  if (fields.has("steps_without_targets")) {
    MOTLEY_ASSIGN(report.steps_without_targets,
                  fields.integer("steps_without_targets", 0, kReportStepsMax));
  }
  if (fields.has("plan_hash")) {
    MOTLEY_ASSIGN(report.plan_hash, fields.word("plan_hash", ""));
  }
  if (fields.has("classes")) {
    MOTLEY_ASSIGN(report.class_names, fields.texts("classes", kReportClassesMax));
  }
  if (json.contains("evaluation")) {
    MOTLEY_ASSIGN(const JsonFields evaluation, fields.member("evaluation"));
    MOTLEY_ASSIGN(report.evaluation, evaluation_from(evaluation));
  }
  if (json.contains("best")) {
    MOTLEY_ASSIGN(const JsonFields best, fields.member("best"));
    BestEvaluation evaluation;
    MOTLEY_ASSIGN(evaluation.step, best.integer("step", 1, kReportStepsMax));
    MOTLEY_ASSIGN(evaluation.loss, json_get<double>(json["best"], "eval_loss", source));
    report.best = evaluation;
  }
  if (json.contains("stopped_early")) {
    MOTLEY_ASSIGN(const std::string why, fields.text("stopped_early"));
    report.end.stopped_early = excerpt(why, RunEnd::kWhatBytesMax);
  }
  if (json.contains("ended")) {
    MOTLEY_ASSIGN(const JsonFields ended, fields.member("ended"));
    MOTLEY_ASSIGN(const std::int64_t status, ended.integer("status", 1, 255));
    report.end.status = static_cast<int>(status);
    MOTLEY_ASSIGN(report.end.what, ended.text("what"));
  }
  return report;
}

}  // namespace motley
