// What goes wrong with the files of a run while it trains: saves that fail, and steps that are not
// written. The training itself may be as well as ever, so it is said beside the verdict. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "cluster/follow/run_event.h"
#include "watch/view/run_verdict.h"

namespace motley {

// Of a folder in which a launcher is at work: since when somebody sees it so, since 1970 UTC.
struct FolderSigns {
  std::optional<double> metrics_gone_since_s;  // steps were done, and metrics.jsonl is not there
  std::optional<double> disk_full_since_s;
};

struct RunTrouble {
  std::string text;    // what, and since when
  std::string advice;  // why, and what can be done

  friend bool operator==(const RunTrouble&, const RunTrouble&) = default;
};

// `events`: in order. `last_step`: that metrics.jsonl tells of; nothing where it is not there.
[[nodiscard]] std::vector<RunTrouble> troubles_of(const std::deque<RunEvent>& events,
                                                  std::optional<std::int64_t> last_step,
                                                  const FolderSigns& folder);

// What they add: a good verdict becomes one that somebody should look at.
[[nodiscard]] RunVerdict beside(RunVerdict verdict, const std::vector<RunTrouble>& troubles);

}  // namespace motley
