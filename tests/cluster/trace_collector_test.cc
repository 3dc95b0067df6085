#include "cluster/run_record/trace_collector.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "protocol/trace_message.h"

namespace motley {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void add_spans(TraceCollector& collector, Rank sender, int count) {
  TraceRecorder recorder(100);
  for (int i = 0; i < count; ++i) recorder.add({sender, "compute", "F0.0", 1, 1, 1});
  send_trace(recorder, [&](const Json& event) { collector.add(sender, event); });
}

std::size_t spans_in(const TraceCollector& collector) {
  const Json trace = Json::parse(collector.text());
  return static_cast<std::size_t>(
      std::ranges::count_if(trace.at("traceEvents"), [](const Json& e) { return e["ph"] == "X"; }));
}

TEST(TraceCollector, PutsThePiecesOfAllRanksTogether) {
  TraceCollector collector({"a", "b"}, 10);
  EXPECT_TRUE(collector.empty());
  add_spans(collector, Rank{0}, 3);
  add_spans(collector, Rank{1}, 2);
  add_spans(collector, Rank{0}, 1);
  EXPECT_EQ(spans_in(collector), 6U);
  EXPECT_TRUE(collector.notes().empty());
}

TEST(TraceCollector, KnowsWhetherAllRanksHaveSentTheirs) {
  TraceCollector collector({"a", "b"}, 10);
  add_spans(collector, Rank{1}, 2);
  EXPECT_FALSE(collector.has_all_ranks());
  add_spans(collector, Rank{0}, 1);
  EXPECT_TRUE(collector.has_all_ranks());
}

TEST(TraceCollector, KeepsARankToItsShare) {
  TraceCollector collector({"a", "b"}, 10);
  add_spans(collector, Rank{0}, 8);
  add_spans(collector, Rank{0}, 8);
  add_spans(collector, Rank{1}, 4);
  EXPECT_EQ(spans_in(collector), 14U);
  EXPECT_THAT(collector.notes(), ElementsAre(HasSubstr("6 spans of rank 0 (a) are left out")));
  EXPECT_THAT(collector.text(), HasSubstr("6 spans of rank 0 (a) are left out"));
}

TEST(TraceCollector, APieceThatCannotBeReadIsNotedAndCostsNothingElse) {
  TraceCollector collector({"a", "b"}, 10);
  add_spans(collector, Rank{1}, 2);
  collector.add(Rank{1}, Json::parse(R"({"event": "trace", "spans": [{"lane": 3}]})"));
  collector.add(Rank{0}, Json::parse(R"({"event": "trace"})"));
  add_spans(collector, Rank{1}, 1);
  EXPECT_EQ(spans_in(collector), 3U);
  EXPECT_THAT(collector.notes(),
              ElementsAre(HasSubstr("a part of rank 0 (a) cannot be read: "),
                          AllOf(HasSubstr("a part of rank 1 (b) cannot be read: "),
                                HasSubstr("key 'lane' has the wrong type"))));
}

TEST(TraceCollector, CountsWhatTheSenderLeftOut) {
  TraceCollector collector({"a"}, 10);
  collector.add(Rank{0}, Json::parse(R"({"event": "trace", "spans": [], "left_out": 5})"));
  collector.add(Rank{0}, Json::parse(R"({"event": "trace", "spans": [], "left_out": -3})"));
  EXPECT_TRUE(collector.empty());
  EXPECT_THAT(collector.notes(), ElementsAre(HasSubstr("5 spans")));
}

}  // namespace
}  // namespace motley
