// File errors of a live run: failing saves and unwritten steps. They do not slow the training, so
// they are reported in addition to the verdict. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "record/run_event.h"
#include "watch/view/run_health.h"

namespace motley {

// Observations of the folder of a live run, with the time of the first observation, since 1970 UTC.
struct FolderObservations {
  std::optional<double> metrics_gone_since_s;  // steps were done, but metrics.jsonl is missing
  std::optional<double> disk_full_since_s;
};

struct FileProblem {
  std::string text;    // the problem and its beginning
  std::string advice;  // cause and hint

  friend bool operator==(const FileProblem&, const FileProblem&) = default;
};

// `events`: in order. `last_step`: the last one in metrics.jsonl; nothing if the file does not
// exist.
[[nodiscard]] std::vector<FileProblem> file_problems_of(const std::deque<RunEvent>& events,
                                                        std::optional<std::int64_t> last_step,
                                                        const FolderObservations& folder);

// Adds the troubles to a verdict; a good one becomes kWatch.
[[nodiscard]] RunHealth with_problems(RunHealth health,
                                      const std::vector<FileProblem>& file_problems);

}  // namespace motley
