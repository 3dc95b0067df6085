// Spans of a rank's trace as they travel from the worker to the launcher: in pieces that are far
// below what a line may hold, so that a trace can be of any length.
#pragma once

#include <cstddef>
#include <functional>

#include "base/json_fwd.h"
#include "base/result.h"
#include "plan/trace.h"

namespace motley {

// Of the text of one piece's spans.
inline constexpr std::size_t kTracePieceBytes = std::size_t{256} << 10;

// Gives `send` the events that carry what was recorded, in order; none where nothing was. A span
// that does not fit a piece by itself is left out and counted in the last event.
void send_trace(const TraceRecorder& recorded, const std::function<void(const Json&)>& send);

// One event's part of a rank's trace.
struct TracePiece {
  std::vector<TraceSpan> spans;
  std::int64_t left_out = 0;  // spans that the sender could not keep or send
};

// The rank is the sender's, whatever the message says.
[[nodiscard]] Result<TracePiece> trace_piece_from_json(const Json& event, Rank sender);

}  // namespace motley
