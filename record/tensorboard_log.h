// TensorboardLog: a run's step metrics, for `tensorboard --logdir RUN/tensorboard`.
// docs/formats/tensorboard.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "record/appended_file.h"
#include "record/step_metrics.h"
#include "record/tensorboard_records.h"

namespace motley {

// Records have values of at most this many ranks, besides the step's own.
inline constexpr std::size_t kTensorboardRanksMax = 256;

class TensorboardLog {
 public:
  // Creates a new file in the folder, whose name sorts after the existing ones regardless of the
  // clock. It supersedes their records of `first_step` and later steps. rank_names: [Rank].
  // kCorrupt if it cannot be written.
  [[nodiscard]] static Result<TensorboardLog> open(const std::filesystem::path& folder,
                                                   std::int64_t first_step,
                                                   std::vector<std::string> rank_names,
                                                   double wall_s);

  // Adds a step. A failure does not fail the run: it is returned as a message for the user, once
  // until the file could be written again.
  [[nodiscard]] std::optional<std::string> append(const StepMetrics& metrics, double wall_s);

  // Tries a last time to write waiting records; a message for the user if some are missing.
  [[nodiscard]] std::optional<std::string> finish();

 private:
  TensorboardLog(AppendedFile file, std::vector<std::string> rank_names);

  AppendedFile file_;
  std::vector<std::string> rank_names_;
  bool waits_ = false;  // for disk space
};

// The values of a step by their tags; missing values are left out.
[[nodiscard]] std::vector<Scalar> scalars_of(const StepMetrics& metrics,
                                             const std::vector<std::string>& rank_names);

}  // namespace motley
