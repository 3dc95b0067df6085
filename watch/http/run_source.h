// What a server of the page asks about a run. All answers are texts as docs/formats/watch.md
// describes them: metrics those of their format, all others JSON. Asked on one thread; nothing here
// ever writes to the run's folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "watch/http/metrics_format.h"

namespace motley {

// What a look found that was not there before.
struct RunChanges {
  bool description = false;
  bool state = false;
  bool events = false;
  bool timeline = false;
  bool cut = false;            // steps that were there are gone, as after a resume
  std::int64_t last_step = 0;  // the newest that history() knows; 0 = none
  bool has_more = false;       // there is more to read: to be asked for soon
};

enum class RunPart { kDescription, kState, kTimeline };

class RunSource {
 public:
  virtual ~RunSource() = default;
  // Reads what is new in the run's folder, of a lot of it a piece; the other questions are about
  // what was read last.
  virtual RunChanges look() = 0;
  [[nodiscard]] virtual Result<std::string> part(RunPart part) = 0;
  // Columns of the steps after `after_step`, of which at most about `points` are kept.
  [[nodiscard]] virtual Result<std::string> history(std::size_t points,
                                                    std::int64_t after_step) = 0;
  [[nodiscard]] virtual Result<std::string> events(std::size_t newest) = 0;
  [[nodiscard]] virtual Result<std::string> metrics(MetricsFormat format) = 0;
};

}  // namespace motley
