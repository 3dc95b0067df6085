#include "protocol/trace_message.h"

#include <fmt/format.h>

#include <algorithm>

#include <gtest/gtest.h>

#include "base/json.h"

namespace motley {
namespace {

constexpr std::size_t kLineBytesMax = std::size_t{4} << 20;  // docs/formats/protocol.md

std::vector<Json> events_of(const TraceRecorder& recorded) {
  std::vector<Json> events;
  send_trace(recorded, [&](const Json& event) { events.push_back(event); });
  return events;
}

TraceRecorder recorded(int count) {
  TraceRecorder recorder(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    recorder.add({{3}, "compute", fmt::format("F0.{}", i), 0.1 * i, 1.0 / 3, i});
  }
  return recorder;
}

TEST(TraceMessage, ATraceLongerThanALineComesInPieces) {
  const TraceRecorder trace = recorded(100'000);
  std::vector<TraceSpan> received;
  std::size_t bytes = 0;
  for (const Json& event : events_of(trace)) {
    const std::size_t line_bytes = event.dump().size();
    EXPECT_LE(line_bytes, kLineBytesMax / 8);
    bytes += line_bytes;
    const auto piece = trace_piece_from_json(Json::parse(event.dump()), Rank{3});
    ASSERT_TRUE(piece.ok()) << describe(piece.error());
    EXPECT_EQ(piece->left_out, 0);
    received.insert(received.end(), piece->spans.begin(), piece->spans.end());
  }
  EXPECT_GT(bytes, 2 * kLineBytesMax);
  EXPECT_EQ(received, trace.spans());
}

TEST(TraceMessage, NothingRecordedIsNothingSent) {
  EXPECT_TRUE(events_of(TraceRecorder(5)).empty());
}

TEST(TraceMessage, SaysWhatCouldNotBeKeptOrSent) {
  TraceRecorder recorder(2);
  recorder.add({{0}, "compute", std::string(kTracePieceBytes, 'x'), 0, 1, 1});
  for (int i = 0; i < 4; ++i) recorder.add({{0}, "compute", "F0.0", 0, 1, 1});
  const auto events = events_of(recorder);
  ASSERT_EQ(events.size(), 1U);
  const auto piece = trace_piece_from_json(events.front(), Rank{0});
  ASSERT_TRUE(piece.ok());
  EXPECT_EQ(piece->spans.size(), 1U);
  EXPECT_EQ(piece->left_out, 4);
}

TEST(TraceMessage, TheRankIsTheSenders) {
  const auto piece = trace_piece_from_json(events_of(recorded(1)).front(), Rank{8});
  ASSERT_TRUE(piece.ok());
  EXPECT_EQ(piece->spans.front().rank, Rank{8});
}

TEST(TraceMessage, AMalformedPieceIsAnError) {
  for (const char* text :
       {R"({})", R"({"spans": 3})", R"({"spans": [7]})", R"({"spans": [{"lane": "compute"}]})",
        R"({"spans": [], "left_out": "many"})"}) {
    EXPECT_FALSE(trace_piece_from_json(Json::parse(text), Rank{0}).ok()) << text;
  }
}

}  // namespace
}  // namespace motley
