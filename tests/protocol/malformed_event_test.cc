// Events whose numbers are out of range for their meaning; a worker may have another version.
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "protocol/protocol.h"
#include "protocol/shard_message.h"
#include "protocol/trace_message.h"

namespace motley {
namespace {

using testing::HasSubstr;

Json shard() {
  const std::string hash(32, 'a');
  return shard_event({{.step = 10, .samples = 80, .tokens = 5120, .optimizer_updates = 9},
                      {0, {"m", 4, hash, {{"w", hash}}}, {"o", 0, hash, {}}}});
}

template <class T>
void expect_refused(const Result<T>& read, const std::string& cause) {
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(read.error().what, HasSubstr("a worker's"));
  EXPECT_THAT(read.error().cause, HasSubstr(cause));
}

TEST(ShardEvent, ArrivesUnchanged) {
  const auto read = read_shard_event(shard());
  ASSERT_TRUE(read.ok()) << describe(read.error());
  EXPECT_EQ(shard_event(*read), shard());
}

TEST(ShardEvent, IsRefusedWithCountsBelowZero) {
  for (const char* key : {"step", "samples", "tokens", "optimizer_updates"}) {
    Json event = shard();
    event[key] = -1;
    expect_refused(read_shard_event(event), std::string("'") + key + "' is -1, less than 0");
  }
}

TEST(ShardEvent, IsRefusedWithCountsThatOnlyFitUnsigned) {
  for (const char* key : {"step", "samples", "tokens", "optimizer_updates"}) {
    Json event = shard();
    event[key] = std::numeric_limits<std::uint64_t>::max();
    expect_refused(read_shard_event(event), std::string("key '") + key + "' is too large");
  }
}

TEST(ShardEvent, IsRefusedWithoutAShard) {
  Json event = shard();
  event.erase("shard");
  expect_refused(read_shard_event(event), "it has no shard");
}

TEST(TraceEvent, IsRefusedWhenAStepIsNoInt) {
  TraceRecorder recorder(1);
  recorder.add({Rank{0}, "wait", "RA0.1", 0.5, 0.25, 3});
  Json event;
  send_trace(recorder, [&](const Json& sent) { event = sent; });
  ASSERT_TRUE(trace_piece_from_json(event, Rank{0}).ok());
  event["spans"][0]["step"] = std::int64_t{1} << 40;
  expect_refused(trace_piece_from_json(event, Rank{0}), "a span of step 1099511627776");
}

TEST(TraceEvent, IsRefusedWithoutAList) {
  expect_refused(trace_piece_from_json(Json::object(), Rank{0}), "the list is missing");
}

TEST(MalformedJob, QuotesALongVerbInPart) {
  Json json = job_to_json(Job{.verb = "profile"});
  json["verb"] = std::string(5000, 'x');
  const auto job = job_from_json(json, "stdin");
  ASSERT_FALSE(job.ok());
  EXPECT_LT(describe(job.error()).size(), 500U);
}

}  // namespace
}  // namespace motley
