#include "record/trace_file.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace motley {
namespace {

const std::vector<std::string> kNames = {"a/cpu", "b: the other"};

TEST(TraceText, NamesRanksAndLanesOnceAndCountsMicroseconds) {
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

TEST(TraceText, SaysWhatItLacks) {
  const Json trace = Json::parse(trace_text({}, {}, {"half of it"}));
  EXPECT_EQ(trace.at("otherData").at("left out"), Json::array({"half of it"}));
  EXPECT_TRUE(trace.at("traceEvents").empty());
}

TEST(TraceFile, GivesTheLastStepAsItWasWritten) {
  const std::vector<TraceSpan> spans = {{{0}, "compute", "F0.0", 0.5, 0.25, 3},
                                        {{1}, "wait", "F0.0", 0.5, 0.5, 3},
                                        {{1}, "compute", "F1.0", 2.5, 0.25, 4},
                                        {{0}, "compute", "F0.0", 2, 0.5, 4},
                                        {{0}, "link to 1", "F0.0", 2.5, 0.125, 4}};
  const auto read = last_traced_step(trace_text(spans, kNames), "t");
  ASSERT_TRUE(read.ok()) << read.error().what;
  EXPECT_EQ(read->step, 4);
  EXPECT_EQ(read->rank_names, kNames);
  const std::vector<TraceSpan> last = {{{1}, "compute", "F1.0", 0.5, 0.25, 4},
                                       {{0}, "compute", "F0.0", 0, 0.5, 4},
                                       {{0}, "link to 1", "F0.0", 0.5, 0.125, 4}};
  EXPECT_EQ(read->spans, last);
}

TEST(TraceFile, RefusesWhatIsNone) {
  for (const char* text : {
           "",
           "[]",
           "{}",
           R"({"traceEvents": []})",
           R"({"traceEvents": [3]})",
           R"({"traceEvents": [{"ph": "M", "pid": -1}]})",
           R"({"traceEvents": [{"ph": "X", "pid": 0, "tid": 0, "name": "F", "ts": 0, "dur": 1,
                                "args": {"step": 1}}]})",
           R"({"traceEvents": [{"ph": "M", "name": "thread_name", "pid": 0, "tid": 0,
                                "args": {"name": "compute"}},
                               {"ph": "X", "pid": 0, "tid": 0, "name": "F", "ts": 0, "dur": 1,
                                "args": {"step": 1}}]})",
           R"({"traceEvents": [{"ph": "M", "name": "process_name", "pid": 0,
                                "args": {"name": "rank 0: a"}},
                               {"ph": "M", "name": "thread_name", "pid": 0, "tid": 0,
                                "args": {"name": "compute"}},
                               {"ph": "X", "pid": 0, "tid": 0, "name": "F", "ts": 0, "dur": -1,
                                "args": {"step": 1}}]})",
       }) {
    const auto read = last_traced_step(text, "t");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt) << text;
  }
}

}  // namespace
}  // namespace motley
