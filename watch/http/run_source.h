// The data source of a page's server. All results are texts as specified in docs/formats/watch.md:
// metrics in their format, everything else JSON. Called on one thread; never writes to the run's
// folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "watch/http/metrics_format.h"

namespace motley {

// Changes since the previous poll.
struct RunChanges {
  bool description = false;
  bool state = false;
  bool events = false;
  bool timeline = false;
  bool cut = false;            // steps were removed, for example by a resume
  std::int64_t last_step = 0;  // the newest in history(); 0 = none
  bool has_more = false;       // unread data remains: poll again soon
};

enum class RunDocument { kDescription, kState, kTimeline };

class RunSource {
 public:
  virtual ~RunSource() = default;
  // Reads new data of the run's folder, at most one piece. The other functions return what was read
  // last.
  virtual RunChanges look() = 0;
  [[nodiscard]] virtual Result<std::string> part(RunDocument part) = 0;
  // Columns of the steps after `after_step`, thinned to at most about `points`.
  [[nodiscard]] virtual Result<std::string> history(std::size_t points,
                                                    std::int64_t after_step) = 0;
  [[nodiscard]] virtual Result<std::string> events(std::size_t newest) = 0;
  [[nodiscard]] virtual Result<std::string> metrics(MetricsFormat format) = 0;
};

}  // namespace motley
