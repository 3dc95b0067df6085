// Traces in the Chrome/Perfetto JSON format, the same for simulated and real runs. Format:
// docs/formats/trace.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace motley {

struct TraceSpan {
  Rank rank;
  std::string lane;  // "compute", "codec", "wait", "link to 1"
  std::string name;  // action text, "F0.3"
  double start_s = 0;
  double duration_s = 0;
  int step = 0;

  friend bool operator==(const TraceSpan&, const TraceSpan&) = default;
};

// The limit of all ranks of a run together: some 60 MB in memory and in the file, which Perfetto
// can still open.
inline constexpr std::size_t kTraceSpansMax = std::size_t{1} << 19;

// A rank's equal share of it. REQUIRES: rank_count >= 1.
[[nodiscard]] std::size_t trace_spans_max(int rank_count);

// The recorded spans of one rank. Memory is bounded: spans beyond the limit are counted and
// dropped.
class TraceRecorder {
 public:
  explicit TraceRecorder(std::size_t spans_max) : spans_max_(spans_max) {}

  void add(TraceSpan span);

  [[nodiscard]] const std::vector<TraceSpan>& spans() const { return spans_; }

  [[nodiscard]] std::int64_t left_out() const { return left_out_; }

 private:
  std::size_t spans_max_;
  std::vector<TraceSpan> spans_;
  std::int64_t left_out_ = 0;
};

// The text of a trace file: one process per rank (named by rank_names[rank]), one thread per lane.
// The notes list what is missing; without notes the member is omitted.
[[nodiscard]] std::string trace_text(const std::vector<TraceSpan>& spans,
                                     const std::vector<std::string>& rank_names,
                                     const std::vector<std::string>& notes = {});

}  // namespace motley
