#include "plan/trace.h"

#include <string>

#include <gtest/gtest.h>

namespace motley {
namespace {

TEST(TraceRecorder, KeepsTheFirstSpansAndCountsTheRest) {
  TraceRecorder recorder(2);
  for (int i = 0; i < 5; ++i) recorder.add({{0}, "compute", std::to_string(i), 0, 0, 1});
  ASSERT_EQ(recorder.spans().size(), 2U);
  EXPECT_EQ(recorder.spans().back().name, "1");
  EXPECT_EQ(recorder.left_out(), 3);
}

TEST(TraceRecorder, RanksShareWhatATraceMayHold) {
  EXPECT_EQ(trace_spans_max(1), kTraceSpansMax);
  EXPECT_LE(trace_spans_max(7) * 7, kTraceSpansMax);
}

}  // namespace
}  // namespace motley
