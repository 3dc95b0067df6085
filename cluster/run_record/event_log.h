// EventLog: records an event of a run as one sentence in two places: the log, for people, and a
// line of events.jsonl, for programs (docs/formats/events.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/log.h"
#include "record/run_event.h"

namespace motley {

// Used by one thread. Opens the file for each event.
class EventLog {
 public:
  // The log is borrowed and must outlive it. before_line: called before each event is logged, to
  // clear a progress line.
  EventLog(
      std::filesystem::path events_file, const Log& log, std::function<void()> before_line = [] {})
      : file_(std::move(events_file)), log_(log), before_line_(std::move(before_line)) {}

  // Logs the text, at the level of its kind: failures and losses as a warning, checkpoints and
  // restarts as information, start and end, which the commands print themselves, as debug. Appends
  // the event to the file; if that fails, a warning is logged, once.
  void emit(RunEventKind kind,
            std::int64_t step,
            const std::string& text,
            const std::string& machine = "") const;

 private:
  const std::filesystem::path file_;
  const Log& log_;
  const std::function<void()> before_line_;
};

}  // namespace motley
