#include "plan/trace_file.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

const std::vector<std::string> kNames = {"a/cpu", "b: the other"};

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
