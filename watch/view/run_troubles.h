// File errors of a live run: failing saves and unwritten steps. They do not slow the training, so
// they are reported in addition to the verdict. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "cluster/follow/run_event.h"
#include "watch/view/run_verdict.h"

namespace motley {

// Observations of the folder of a live run, with the time of the first observation, since 1970 UTC.
struct FolderSigns {
  std::optional<double> metrics_gone_since_s;  // steps were done, but metrics.jsonl is missing
  std::optional<double> disk_full_since_s;
};

struct RunTrouble {
  std::string text;    // the problem and its beginning
  std::string advice;  // cause and hint

  friend bool operator==(const RunTrouble&, const RunTrouble&) = default;
};

// `events`: in order. `last_step`: the last one in metrics.jsonl; nothing if the file does not
// exist.
[[nodiscard]] std::vector<RunTrouble> troubles_of(const std::deque<RunEvent>& events,
                                                  std::optional<std::int64_t> last_step,
                                                  const FolderSigns& folder);

// Adds the troubles to a verdict; a good one becomes kWatch.
[[nodiscard]] RunVerdict beside(RunVerdict verdict, const std::vector<RunTrouble>& troubles);

}  // namespace motley
