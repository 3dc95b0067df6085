#include "record/run_folder.h"

#include <fmt/format.h>

#include <system_error>

#include "base/json.h"
#include "base/system/files.h"
#include "base/system/privacy.h"
#include "checkpoint/replication/folder_id.h"

namespace motley {
namespace {

// The limit for a plan or profile. Thousands of devices fit, and it takes less than 1 GiB in
// memory.
constexpr std::uint64_t kReadBytesMax = 32 << 20;

Error damaged(Error error, const std::vector<CheckpointInfo>& checkpoints) {
  const auto& newest = checkpoints.back();
  error.remedy +=
      fmt::format("{}move {} away", error.remedy.empty() ? "" : ", or ", newest.folder.string());
  if (checkpoints.size() > 1) {
    error.remedy += fmt::format(" and resume again: step {} is then the newest",
                                checkpoints[checkpoints.size() - 2].step);
  }
  return error;
}

}  // namespace

Result<void> RunFolder::make() const {
  // Parent folders get the user's default permissions.
  std::error_code code;
  const auto absolute = std::filesystem::absolute(dir_, code).lexically_normal();
  if (code) return file_error("find", dir_, code.value());  // the working folder was deleted
  MOTLEY_TRY(make_durable_folders(absolute.parent_path()));
  keep_files_private(dir_);
  return make_durable_folders(dir_);
}

Result<void> RunFolder::check_new() const {
  std::error_code code;
  // A simulated run has no checkpoint; its report records whether it completed.
  const auto report = read_report(report_path());
  const bool was_finished =
      std::filesystem::exists(report_path(), code) && (!report.ok() || report->end.has_completed());
  if (was_finished || !list_checkpoints(dir_).empty()) {
    return Error{
        ErrorCode::kConfig, fmt::format("{} already holds a run", dir_.string()),
        "a run is never overwritten",
        was_finished && report.ok() && !report->end.stopped_early.empty()
            ? "choose another folder with --run; or raise train.early_stopping, or set it to 0, "
              "and continue with --resume"
        : was_finished
            ? "choose another folder with --run; or raise train.steps and continue with --resume"
            : "continue it with --resume, or choose another folder with --run"};
  }
  return require_all_count(dir_);
}

Result<void> RunFolder::create(std::int64_t launch) const {
  MOTLEY_TRY(check_new());
  MOTLEY_TRY(make_folders(dir_));
  std::error_code code;
  if (!std::filesystem::exists(metrics_path(), code)) return {};
  std::filesystem::rename(metrics_path(),
                          dir_ / fmt::format("metrics.before-launch-{}.jsonl", launch), code);
  if (code) return file_error("move away", metrics_path(), code.value());
  return {};
}

Result<CheckpointInfo> RunFolder::newest_checkpoint(WorkObserver* watch) const {
  const std::vector<CheckpointInfo> checkpoints = list_checkpoints(dir_);
  if (checkpoints.empty()) {
    MOTLEY_TRY(require_all_count(dir_));
    return Error{ErrorCode::kConfig, fmt::format("{} has no checkpoint", dir_.string()),
                 "there is nothing to resume from",
                 "check --run; a new run starts without --resume"};
  }
  auto checked = verify_checkpoint(checkpoints.back().folder, watch);
  if (!checked.ok()) return damaged(std::move(checked).error(), checkpoints);
  return checkpoints.back();
}

Result<std::string> RunFolder::ensure_run_id(const std::string& known) const {
  MOTLEY_ASSIGN(std::string id, read_run_id(dir_));
  if (!id.empty()) return id;
  MOTLEY_ASSIGN(id, known.empty() ? make_folder_id() : known);
  MOTLEY_TRY(write_run_id(dir_, id));
  return id;
}

Result<void> RunFolder::write_config(const Config& config) const {
  return write_file_atomic(config_path(), config_to_toml(config));
}

Result<void> RunFolder::write_plan(const Plan& plan) const {
  return write_file_atomic(plan_path(), plan_to_json(plan).dump(2) + "\n");
}

Result<void> RunFolder::write_profile(const Profile& profile) const {
  return write_file_atomic(profile_path(), profile_to_json(profile).dump(2) + "\n");
}

Result<void> RunFolder::write_class_names(const std::vector<std::string>& names) const {
  // Names of folders may contain any bytes.
  return write_file_atomic(classes_path(),
                           Json(names).dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

Result<void> RunFolder::write_report(const RunReport& report) const {
  // An error may quote a path, which may contain any bytes.
  const Json json = report_to_json(report);
  return write_file_atomic(report_path(),
                           json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

Result<Plan> read_plan(const std::filesystem::path& path) {
  MOTLEY_ASSIGN(const std::string text, read_file(path, kReadBytesMax));
  return parse_plan(text, path.string());
}

Result<Profile> read_profile(const std::filesystem::path& path) {
  MOTLEY_ASSIGN(const std::string text, read_file(path, kReadBytesMax));
  return parse_profile(text, path.string());
}

Result<RunReport> read_report(const std::filesystem::path& path) {
  MOTLEY_ASSIGN(const std::string text, read_file(path, kReadBytesMax));
  return parse_report(text, path.string());
}

}  // namespace motley
