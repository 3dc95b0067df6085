#include "plan/trace.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace motley {
namespace {

TEST(Trace, NamesRanksAndLanesOnceAndCountsMicroseconds) {
  const Json trace = trace_to_json({{{1}, "compute", "F0.0", 0.5, 0.25, 7},
                                    {{1}, "wait", "B0.0", 1, 1, 7},
                                    {{1}, "compute", "B0.0", 2, 1, 7}},
                                   {"a/cpu", "b/cpu"});
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
}

}  // namespace
}  // namespace motley
