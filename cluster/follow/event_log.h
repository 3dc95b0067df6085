// EventLog: what happens in a run is said once, in one sentence: to people by the log, and to
// programs as a line of events.jsonl (docs/formats/events.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/log.h"
#include "cluster/follow/run_event.h"

namespace motley {

// One owner thread.
class EventLog {
 public:
  // The log must outlive it. before_line: is called before a line that a person may see.
  EventLog(
      std::filesystem::path events_file, const Log& log, std::function<void()> before_line = [] {})
      : file_(std::move(events_file)), log_(log), before_line_(std::move(before_line)) {}

  // A warning where somebody should look, else a line for information; of what people read
  // elsewhere (how the run starts and ends) only with details. A file that cannot be written is a
  // warning, once, and no more.
  void tell(RunEventKind kind,
            std::int64_t step,
            const std::string& text,
            const std::string& machine = "") const;

 private:
  const std::filesystem::path file_;
  const Log& log_;
  const std::function<void()> before_line_;
};

}  // namespace motley
