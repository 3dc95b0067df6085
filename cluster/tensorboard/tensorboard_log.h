// TensorboardLog: what a run's steps measured, for `tensorboard --logdir RUN/tensorboard`.
// docs/formats/tensorboard.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/follow/appended_file.h"
#include "cluster/follow/metrics.h"
#include "cluster/tensorboard/event_records.h"

namespace motley {

// Of each record, besides a step's own values.
inline constexpr std::size_t kTensorboardRanksMax = 256;

class TensorboardLog {
 public:
  // Begins a file of its own in the folder, which comes after those that are there, however the
  // clock goes. What they say of `first_step` and later steps is superseded. rank_names: [Rank].
  // kCorrupt when it cannot be written.
  [[nodiscard]] static Result<TensorboardLog> open(const std::filesystem::path& folder,
                                                   std::int64_t first_step,
                                                   std::vector<std::string> rank_names,
                                                   double wall_s);

  // Adds a step. What stands in the way is no error of the run: it is returned as a line for
  // people, once until the file could be written again.
  [[nodiscard]] std::optional<std::string> append(const StepMetrics& metrics, double wall_s);

  // Tries a last time to write what waits; a line for people where something is missing.
  [[nodiscard]] std::optional<std::string> finish();

 private:
  TensorboardLog(AppendedFile file, std::vector<std::string> rank_names);

  AppendedFile file_;
  std::vector<std::string> rank_names_;
  bool waits_ = false;  // for room on the disk
};

// The values of a step by their tags; those that it has not are left out.
[[nodiscard]] std::vector<Scalar> scalars_of(const StepMetrics& metrics,
                                             const std::vector<std::string>& rank_names);

}  // namespace motley
