#include "checkpoint/save/shard_report.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "base/json.h"
#include "checkpoint/folders.h"
#include "checkpoint/save/sealed_json.h"

namespace motley {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrefix = "report-";

Error malformed(const std::string& source, const std::string& cause) {
  return {ErrorCode::kCorrupt, fmt::format("malformed shard report, {}", source), cause,
          "use the same version of Motley on every machine"};
}

Result<std::int64_t> get_count(const Json& json, const char* key, const std::string& source) {
  MOTLEY_ASSIGN(const std::int64_t count, json_get<std::int64_t>(json, key, source));
  if (count < 0) {
    return malformed(source, fmt::format("'{}' is {}, less than 0", key, count));
  }
  return count;
}

}  // namespace

Json shard_report_to_json(const ShardReport& report) {
  const CheckpointState& state = report.state;
  Json json = {{"step", state.step},
               {"samples", state.samples},
               {"tokens", state.tokens},
               {"optimizer_updates", state.optimizer_updates},
               {"shard", shard_to_json(report.shard)}};
  if (state.gradient_scale) json["gradient_scale"] = gradient_scale_to_json(*state.gradient_scale);
  if (state.evaluations) json["evaluations"] = evaluation_record_to_json(*state.evaluations);
  if (!state.round_tokens.empty()) json["round_tokens"] = state.round_tokens;
  return json;
}

Result<ShardReport> shard_report_from_json(const Json& json, const std::string& source) {
  ShardReport report;
  CheckpointState& state = report.state;
  MOTLEY_ASSIGN(state.step, get_count(json, "step", source));
  MOTLEY_ASSIGN(const std::int64_t samples, get_count(json, "samples", source));
  MOTLEY_ASSIGN(const std::int64_t tokens, get_count(json, "tokens", source));
  MOTLEY_ASSIGN(state.optimizer_updates, get_count(json, "optimizer_updates", source));
  state.samples = static_cast<std::uint64_t>(samples);
  state.tokens = static_cast<std::uint64_t>(tokens);
  if (const auto scale = json.find("gradient_scale"); scale != json.end()) {
    MOTLEY_ASSIGN(state.gradient_scale, gradient_scale_from_json(*scale, source));
  }
  if (const auto record = json.find("evaluations"); record != json.end()) {
    MOTLEY_ASSIGN(state.evaluations, evaluation_record_from_json(*record, source));
  }
  MOTLEY_ASSIGN(state.round_tokens, round_tokens_from_json(json, source));
  const auto shard = json.find("shard");
  if (shard == json.end()) return malformed(source, "it has no shard");
  MOTLEY_ASSIGN(report.shard, shard_from_json(*shard, source));
  return report;
}

Result<void> write_shard_report(const SaveLocation& location,
                                int rank_count,
                                const ShardReport& report) {
  const std::string name =
      fmt::format("{}{:05}-of-{:05}.json", kPrefix, report.shard.rank + 1, rank_count);
  return write_sealed_json(partial_folder(location) / name, shard_report_to_json(report));
}

std::vector<ShardReport> read_shard_reports(const SaveLocation& location) {
  std::vector<ShardReport> reports;
  std::error_code code;
  fs::directory_iterator it(partial_folder(location), code);
  for (; !code && it != fs::directory_iterator(); it.increment(code)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(kPrefix) || !name.ends_with(".json")) continue;
    const Result<Json> json = read_sealed_json(it->path());
    if (!json.ok()) continue;
    Result<ShardReport> report = shard_report_from_json(*json, it->path().string());
    if (report.ok() && report->state.step == location.step) reports.push_back(*std::move(report));
  }
  return reports;
}

std::vector<LeftReport> left_reports(const fs::path& run_dir) {
  const auto checkpoints = list_checkpoints(run_dir);
  std::vector<LeftReport> reports;
  for (const FolderName& name : folder_names(checkpoints_root(run_dir))) {
    const bool is_newer = checkpoints.empty() || name.step > checkpoints.back().step;
    if (name.kind != FolderKind::kPartial || !is_newer) continue;
    for (ShardReport& report : read_shard_reports({run_dir, name.launch, name.step})) {
      reports.push_back({name.launch, std::move(report)});
    }
  }
  return reports;
}

}  // namespace motley
