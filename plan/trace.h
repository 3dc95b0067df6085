// The spans of a traced step, the same for simulated and real runs. The file that holds them:
// record/trace_file.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"

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

}  // namespace motley
