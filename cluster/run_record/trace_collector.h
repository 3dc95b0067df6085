// TraceCollector: combines the trace events of all ranks. Invalid trace data of a worker is not an
// error: parts that cannot be read or stored are omitted, with a note. One owner thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/json_fwd.h"
#include "plan/trace.h"

namespace motley {

class TraceCollector {
 public:
  // Stores at most `spans_max` spans of each rank.
  TraceCollector(std::vector<std::string> rank_names, std::size_t spans_max);

  // Adds an event of a worker. REQUIRES: sender has a name.
  void add(Rank sender, const Json& event);

  [[nodiscard]] bool empty() const { return spans_.empty(); }

  // Whether there are events of all ranks.
  [[nodiscard]] bool has_all_ranks() const;

  // A message for each omission.
  [[nodiscard]] std::vector<std::string> notes() const;
  // The contents of the trace file.
  [[nodiscard]] std::string text() const;

 private:
  struct MissingSpans {
    bool is_known = false;  // the rank has sent an event
    std::size_t kept = 0;
    std::int64_t left_out = 0;  // spans
    std::string unreadable;     // the reason if a piece was; empty = none was
  };

  const std::vector<std::string> names_;     // [Rank]
  const std::size_t spans_max_;              // per rank
  std::vector<MissingSpans> missing_spans_;  // [Rank]
  std::vector<TraceSpan> spans_;
};

}  // namespace motley
