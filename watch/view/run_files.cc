#include "watch/view/run_files.h"

#include <utility>

#include "base/system/files.h"
#include "base/toml.h"
#include "run_config/config_io.h"

namespace motley {
namespace {

// 1.5 times the longest trace that a run records (plan/trace.h).
constexpr std::uint64_t kTraceBytesMax = 96 << 20;
constexpr std::uint64_t kPredictionBytesMax = 16 << 20;

bool is_same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

std::optional<Config> config_in(const std::filesystem::path& path) {
  const auto text = read_file(path, kTomlBytesMax);
  if (!text.ok()) return {};
  auto resolved = resolve_config(*text, path.string(), {}, {});
  if (!resolved.ok()) return {};
  return std::move(resolved->config);
}

std::optional<Plan> plan_in(const std::filesystem::path& path) {
  auto plan = read_plan(path);
  if (!plan.ok()) return {};
  return *std::move(plan);
}

// Between two launches the file may belong to the previous plan.
std::optional<RunPrediction> prediction_of(const Plan& plan, const std::filesystem::path& path) {
  const auto text = read_file(path, kPredictionBytesMax);
  auto prediction = text.ok() ? parse_prediction(*text, path.string()) : text.error();
  const bool is_of_it = prediction.ok() && prediction->plan_hash == plan_hash_text(plan) &&
                        prediction->ranks.size() == plan.ranks.size();
  if (!is_of_it) return {};
  return *std::move(prediction);
}

std::optional<RunEnd> end_in(const std::filesystem::path& path) {
  auto report = read_report(path);
  if (!report.ok()) return {};
  return std::move(report->end);
}

}  // namespace

bool FileStamp::changed() {
  struct stat now {};

  const bool exists = ::stat(path_.c_str(), &now) == 0;
  const bool is_same = exists == exists_ && (!exists || is_same_file(now, seen_));
  exists_ = exists;
  seen_ = now;
  return !is_same;
}

RunFiles::RunFiles(const RunFolder& folder)
    : config_file_(folder.config_path()),
      plan_file_(folder.plan_path()),
      prediction_file_(folder.prediction_path()),
      report_file_(folder.report_path()) {}

bool RunFiles::poll() {
  bool changed = false;
  const bool is_planned_anew = plan_file_.changed();
  const bool is_predicted_anew = prediction_file_.changed();
  if (config_file_.changed()) {
    config_ = config_in(config_file_.path());
    changed = true;
  }
  if (is_planned_anew || is_predicted_anew) {
    plan_ = plan_in(plan_file_.path());
    prediction_ = plan_ ? prediction_of(*plan_, prediction_file_.path()) : std::nullopt;
    changed = true;
  }
  if (report_file_.changed()) {
    reported_end_ = end_in(report_file_.path());
    changed = true;
  }
  return changed;
}

bool TracedFile::poll() {
  const bool changed = file_.changed();
  if (changed) is_read_ = false;
  return changed;
}

const TracedStep* TracedFile::step() {
  if (!is_read_) {
    is_read_ = true;
    step_.reset();
    const auto text = read_file(file_.path(), kTraceBytesMax);
    auto step = text.ok() ? last_traced_step(*text, file_.path().string()) : text.error();
    if (step.ok()) step_ = *std::move(step);
  }
  return step_ ? &*step_ : nullptr;
}

}  // namespace motley
