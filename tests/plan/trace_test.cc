#include "plan/trace.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace motley {
namespace {

TEST(Trace, NamesRanksAndLanesOnceAndCountsMicroseconds) {
  const Json trace = Json::parse(trace_text({{{1}, "compute", "F0.0", 0.5, 0.25, 7},
                                             {{1}, "wait", "B0.0", 1, 1, 7},
                                             {{1}, "compute", "B0.0", 2, 1, 7}},
                                            {"a/cpu", "b/cpu"}));
  const Json& events = trace["traceEvents"];
  ASSERT_EQ(events.size(), 7U);  // two ranks, two lanes, three spans
  EXPECT_EQ(events[1]["args"]["name"], "rank 1: b/cpu");
  const Json& span = events[3];
  EXPECT_EQ(span["name"], "F0.0");
  EXPECT_EQ(span["ts"], 500000.0);
  EXPECT_EQ(span["dur"], 250000.0);
  EXPECT_EQ(span["args"]["step"], 7);
  EXPECT_EQ(events[6]["tid"], span["tid"]);
  EXPECT_NE(events[5]["tid"], span["tid"]);
  EXPECT_FALSE(trace.contains("otherData"));
}

TEST(Trace, SaysWhatItLacks) {
  const Json trace = Json::parse(trace_text({}, {}, {"half of it"}));
  EXPECT_EQ(trace.at("otherData").at("left out"), Json::array({"half of it"}));
  EXPECT_TRUE(trace.at("traceEvents").empty());
}

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
