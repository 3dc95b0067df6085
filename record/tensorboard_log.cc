#include "record/tensorboard_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/system/files.h"

namespace motley {
namespace {

// TensorBoard reads the files of a folder in the order of their names.
constexpr std::string_view kNameBegin = "events.out.tfevents.";
constexpr const char* kNameEnd = ".motley";

// The largest number in the names of the folder's event files; 0 if there is none.
std::int64_t newest_number(const std::filesystem::path& folder) {
  std::int64_t newest = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    const std::string name = file->path().filename().string();
    if (!name.starts_with(kNameBegin)) continue;
    std::int64_t number = 0;
    std::from_chars(name.data() + kNameBegin.size(), name.data() + name.size(), number);
    newest = std::max(newest, number);
  }
  return newest;
}

}  // namespace

Result<TensorboardLog> TensorboardLog::open(const std::filesystem::path& folder,
                                            std::int64_t first_step,
                                            std::vector<std::string> rank_names,
                                            double wall_s) {
  constexpr std::size_t kWaitingBytesMax = 16 << 20;
  MOTLEY_TRY(make_folders(folder));
  const std::int64_t number =
      std::max(static_cast<std::int64_t>(wall_s), newest_number(folder) + 1);
  const std::string name = fmt::format("{}{:010}{}", kNameBegin, number, kNameEnd);
  MOTLEY_ASSIGN(AppendedFile file, AppendedFile::open(folder / name, 0, kWaitingBytesMax));
  TensorboardLog log(std::move(file), std::move(rank_names));
  // If the disk is full, these records wait.
  const Result<void> begun =
      log.file_.append(version_record(wall_s) + start_record(wall_s, first_step));
  log.waits_ = !begun.ok();
  return log;
}

std::optional<std::string> TensorboardLog::append(const StepMetrics& metrics, double wall_s) {
  const bool waited = waits_;
  const Result<void> appended =
      file_.append(scalars_record(wall_s, metrics.step, scalars_of(metrics, rank_names_)));
  waits_ = !appended.ok();
  if (!waits_ || waited) return std::nullopt;
  return fmt::format("{}: {}; its records are buffered in memory, and the run continues",
                     appended.error().what, appended.error().cause);
}

std::optional<std::string> TensorboardLog::finish() {
  const Result<void> finished = file_.finish();
  if (finished.ok()) return std::nullopt;
  return fmt::format("{}: {}", finished.error().what, finished.error().cause);
}

TensorboardLog::TensorboardLog(AppendedFile file, std::vector<std::string> rank_names)
    : file_(std::move(file)), rank_names_(std::move(rank_names)) {}

std::vector<Scalar> scalars_of(const StepMetrics& metrics,
                               const std::vector<std::string>& rank_names) {
  std::vector<Scalar> scalars;
  const auto add = [&](const char* tag, std::optional<double> value) {
    if (value) scalars.push_back({tag, *value});
  };
  if (metrics.is_computed && !metrics.without_targets) {
    add("train/loss", metrics.outcome.loss);
    add("train/gradient_norm", metrics.outcome.grad_norm);
  }
  add("train/accuracy", metrics.outcome.accuracy);
  add("train/learning_rate", metrics.outcome.lr);
  add("train/skipped", metrics.outcome.skipped ? 1 : 0);
  if (metrics.without_targets) add("train/without_targets", 1);
  add("eval/loss", metrics.eval_loss);
  add("eval/perplexity", metrics.eval_perplexity);
  add("eval/accuracy", metrics.eval_accuracy);
  add("eval/top5_accuracy", metrics.eval_top5_accuracy);
  add("eval/bits_per_byte", metrics.eval_bits_per_byte);
  add("speed/tokens_per_s", metrics.tokens_per_s());
  add("speed/step_s", metrics.step_s);
  add("speed/predicted_step_s", metrics.predicted_step_s);
  add("speed/wire_bytes", static_cast<double>(metrics.wire_bytes));
  add("bubble/all", metrics.bubble);
  add("bubble/imbalance", metrics.losses.imbalance);
  add("bubble/links_and_filling", metrics.losses.links_and_filling);
  const std::size_t ranks =
      std::min({metrics.wait_s.size(), rank_names.size(), kTensorboardRanksMax});
  for (std::size_t r = 0; r < ranks; ++r) {
    scalars.push_back({"waiting_s/" + rank_names[r], metrics.wait_s[r]});
    if (r < metrics.ranks.size() && metrics.ranks[r].memory_bytes > 0) {
      scalars.push_back(
          {"memory_bytes/" + rank_names[r], static_cast<double>(metrics.ranks[r].memory_bytes)});
    }
  }
  return scalars;
}

}  // namespace motley
