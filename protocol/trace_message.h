// Spans of a rank's trace on the way to the launcher: in pieces far below the maximum line length,
// so that a trace can have any length.
#pragma once

#include <cstddef>
#include <functional>

#include "base/json_fwd.h"
#include "base/result.h"
#include "plan/trace.h"

namespace motley {

// Size of the spans' text in one piece.
inline constexpr std::size_t kTracePieceBytes = std::size_t{256} << 10;

// Calls `send` with the events of the recorded spans, in order; never if there are none. A span too
// large for a piece is omitted and counted in the last event.
void send_trace(const TraceRecorder& recorded, const std::function<void(const Json&)>& send);

// One event's part of a rank's trace.
struct TracePiece {
  std::vector<TraceSpan> spans;
  std::int64_t left_out = 0;  // spans that the sender could not store or send
};

// The rank is the sender's, whatever the message contains.
[[nodiscard]] Result<TracePiece> trace_piece_from_json(const Json& event, Rank sender);

}  // namespace motley
