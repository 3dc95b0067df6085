// TraceCollector: puts the pieces of all ranks' traces together. Nothing that a worker sends as a
// trace is an error: what cannot be read or kept is left out, and noted. One owner thread.
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
  // Keeps at most `spans_max` spans of each rank.
  TraceCollector(std::vector<std::string> rank_names, std::size_t spans_max);

  // One event of a worker. REQUIRES: sender has a name.
  void add(Rank sender, const Json& event);

  [[nodiscard]] bool empty() const { return spans_.empty(); }

  // A line for people for each thing that is missing.
  [[nodiscard]] std::vector<std::string> notes() const;
  // The trace file.
  [[nodiscard]] std::string text() const;

 private:
  struct Lack {
    std::size_t kept = 0;
    std::int64_t left_out = 0;  // spans
    std::string unreadable;     // why a piece was; empty = none was
  };

  const std::vector<std::string> names_;  // [Rank]
  const std::size_t spans_max_;           // of a rank
  std::vector<Lack> lacks_;               // [Rank]
  std::vector<TraceSpan> spans_;
};

}  // namespace motley
