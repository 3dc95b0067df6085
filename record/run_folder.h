// RunFolder: a run's folder with its files: config.toml, plan.json, profile.json, metrics.jsonl,
// trace.json, report.json, log/, launches/, checkpoints/ (ARCHITECTURE.md, "Run folder"). It takes
// no lock: a launcher that writes there holds the folder's RunLock.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "plan/plan.h"
#include "plan/profile.h"
#include "record/run_report.h"
#include "run_config/config_io.h"

namespace motley {

class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path dir) : dir_(std::move(dir)) {}

  [[nodiscard]] const std::filesystem::path& dir() const { return dir_; }

  [[nodiscard]] std::filesystem::path config_path() const { return dir_ / "config.toml"; }

  [[nodiscard]] std::filesystem::path plan_path() const { return dir_ / "plan.json"; }

  [[nodiscard]] std::filesystem::path profile_path() const { return dir_ / "profile.json"; }

  [[nodiscard]] std::filesystem::path metrics_path() const { return dir_ / "metrics.jsonl"; }

  [[nodiscard]] std::filesystem::path events_path() const { return dir_ / "events.jsonl"; }

  [[nodiscard]] std::filesystem::path trace_path() const { return dir_ / "trace.json"; }

  [[nodiscard]] std::filesystem::path prediction_path() const { return dir_ / "prediction.json"; }

  // The trace of a simulated step, in the format of trace.json.
  [[nodiscard]] std::filesystem::path predicted_trace_path() const {
    return dir_ / "trace-predicted.json";
  }

  [[nodiscard]] std::filesystem::path report_path() const { return dir_ / "report.json"; }

  [[nodiscard]] std::filesystem::path tensorboard_dir() const { return dir_ / "tensorboard"; }

  // The names of the classes that the data has, as a JSON list; absent if it has none.
  [[nodiscard]] std::filesystem::path classes_path() const { return dir_ / "classes.json"; }

  [[nodiscard]] std::filesystem::path log_dir() const { return dir_ / "log"; }

  // Creates the folder if it is absent, accessible only to this user. Files that this process
  // creates from now on are private as base/system/privacy.h describes.
  [[nodiscard]] Result<void> make() const;

  // Checks that a run may begin here. kConfig if the folder contains a run, which is never
  // overwritten.
  [[nodiscard]] Result<void> check_new() const;
  // Prepares the folder for a new run, after check_new(). A run that ended before its first
  // checkpoint cannot be resumed: its metrics are renamed to metrics.before-launch-N.jsonl, where N
  // is this launch's number, and the folder is reused.
  [[nodiscard]] Result<void> create(std::int64_t launch) const;

  // The newest checkpoint, with every byte verified. kConfig if there is none, kCorrupt if it is
  // damaged (the remedy names the previous one, if any). `watch` receives the progress in bytes;
  // nullptr: none.
  [[nodiscard]] Result<CheckpointInfo> newest_checkpoint(WorkObserver* watch = nullptr) const;

  // The id of the run (checkpoint/replication/folder_id.h), which is stored in the folder. If the
  // folder has none yet, `known` is stored, or a new id if that is "".
  [[nodiscard]] Result<std::string> ensure_run_id(const std::string& known) const;
  [[nodiscard]] Result<void> write_config(const Config& config) const;
  [[nodiscard]] Result<void> write_plan(const Plan& plan) const;
  [[nodiscard]] Result<void> write_profile(const Profile& profile) const;
  [[nodiscard]] Result<void> write_class_names(const std::vector<std::string>& names) const;
  [[nodiscard]] Result<void> write_report(const RunReport& report) const;

 private:
  std::filesystem::path dir_;
};

[[nodiscard]] Result<Plan> read_plan(const std::filesystem::path& path);
[[nodiscard]] Result<Profile> read_profile(const std::filesystem::path& path);
[[nodiscard]] Result<RunReport> read_report(const std::filesystem::path& path);

}  // namespace motley
