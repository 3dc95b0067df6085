// RunEvent: an event of a run, a line of events.jsonl. Format: docs/formats/events.md.
#pragma once

#include <cstdint>
#include <string>

#include "base/json_fwd.h"
#include "base/result.h"

namespace motley {

enum class RunEventKind {
  kStarted,
  kResumed,
  kCheckpoint,
  kCheckpointFailed,
  kMetricsFailed,
  kLost,
  kRestarted,
  kReplanned,
  kWarning,
  kEnded
};

struct RunEvent {
  double time_s = 0;      // since 1970 UTC
  std::int64_t step = 0;  // the step concerned, or the last one done; 0 = none yet
  RunEventKind kind = RunEventKind::kWarning;
  std::string text;     // for the user, one line
  std::string machine;  // the machine concerned; "" = none in particular

  friend bool operator==(const RunEvent&, const RunEvent&) = default;
};

// "started", "checkpoint_failed", ….
[[nodiscard]] const char* run_event_word(RunEventKind kind);

[[nodiscard]] Json run_event_to_json(const RunEvent& event);
// kCorrupt, naming the source, if it is not an event of a known kind.
[[nodiscard]] Result<RunEvent> run_event_from_json(const Json& json, const std::string& source);

}  // namespace motley
