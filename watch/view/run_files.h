// RunFiles: the files of a run's folder other than metrics and events: configuration, plan, report
// and traces, reread after they are replaced. A file that is missing, unreadable or being replaced
// counts as absent.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "plan/plan.h"
#include "record/run_folder.h"
#include "record/run_prediction.h"
#include "record/trace_file.h"
#include "run_config/config.h"
#include "watch/view/run_state.h"

namespace motley {

// Detects that a file has changed since the last check.
class FileStamp {
 public:
  explicit FileStamp(std::filesystem::path path) : path_(std::move(path)) {}

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  [[nodiscard]] bool changed();

 private:
  std::filesystem::path path_;
  bool exists_ = false;

  struct stat seen_ {};
};

class RunFiles {
 public:
  explicit RunFiles(const RunFolder& folder);

  // Returns whether any of the files changed.
  bool poll();

  [[nodiscard]] const std::optional<Config>& config() const { return config_; }

  [[nodiscard]] const std::optional<Plan>& plan() const { return plan_; }

  // Of plan().
  [[nodiscard]] const std::optional<RunPrediction>& prediction() const { return prediction_; }

  [[nodiscard]] const std::optional<RunEnd>& reported_end() const { return reported_end_; }

 private:
  FileStamp config_file_;
  FileStamp plan_file_;
  FileStamp prediction_file_;
  FileStamp report_file_;
  std::optional<Config> config_;
  std::optional<Plan> plan_;
  std::optional<RunPrediction> prediction_;
  std::optional<RunEnd> reported_end_;
};

// The last step of a trace file, read on demand after a change.
class TracedFile {
 public:
  explicit TracedFile(std::filesystem::path path) : file_(std::move(path)) {}

  // Returns whether the file has changed since the last poll.
  bool poll();
  // nullptr if there is none.
  [[nodiscard]] const TracedStep* step();

 private:
  FileStamp file_;
  bool is_read_ = false;
  std::optional<TracedStep> step_;
};

}  // namespace motley
