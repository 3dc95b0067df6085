#include "watch/http/live_feed.h"

#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/watch/played_run.h"

namespace motley {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class HeardStream : public LiveStream {
 public:
  void send(std::shared_ptr<const std::string> text) override { text_ += *text; }

  void check(SteadyClock::time_point) override { ++checks_; }

  // The text received since the last call.
  std::string heard() { return std::exchange(text_, {}); }

  int checks_ = 0;

 private:
  std::string text_;
};

class LiveFeedTest : public testing::Test {
 protected:
  std::shared_ptr<HeardStream> enters(std::string_view last_event_id = {}) {
    auto stream = std::make_shared<HeardStream>();
    feed_.add(stream, last_event_id);
    return stream;
  }

  PlayedRun run_{100};
  LiveFeed feed_{run_, 3600.0};
};

TEST(LiveMessage, IsOneEventOfLinesOfData) {
  EXPECT_EQ(live_message("state", "{}"), "event: state\ndata: {}\n\n");
  EXPECT_EQ(live_message("steps", "{}", "7"), "event: steps\nid: 7\ndata: {}\n\n");
  // Text with line ends cannot begin another event.
  EXPECT_EQ(live_message("a", "1\nevent: b\r\r2"),
            "event: a\ndata: 1\ndata: event: b\ndata: \ndata: 2\n\n");
}

TEST_F(LiveFeedTest, AnybodyNewGetsAll) {
  run_.play(5);
  const std::string all = enters()->heard();
  EXPECT_THAT(all, StartsWith("retry: "));
  for (const char* part : {"event: description\n", "event: state\n", "event: events\n",
                           "event: timeline\n", "event: steps\nid: 5\ndata: {\"whole\":true,"}) {
    EXPECT_THAT(all, HasSubstr(part));
  }
  EXPECT_THAT(all, HasSubstr("\"step\":[1,2,3,4,5]"));
}

TEST_F(LiveFeedTest, WhoComesBackGetsTheStepsThatItLacks) {
  run_.play(5);
  EXPECT_THAT(enters("3")->heard(), HasSubstr("\"step\":[4,5]"));
  EXPECT_THAT(enters("5")->heard(), Not(HasSubstr("event: steps")));
}

TEST_F(LiveFeedTest, AnIdOfNoStepThatIsThereIsAsGoodAsNone) {
  run_.play(2);
  for (const char* id : {"9", "-1", "x", "1x", "99999999999999999999", ""}) {
    EXPECT_THAT(enters(id)->heard(), HasSubstr("{\"whole\":true,")) << id;
  }
}

TEST_F(LiveFeedTest, TellsWhatIsNewToAll) {
  const auto one = enters();
  run_.play(2);
  const auto other = enters();
  EXPECT_THAT(one->heard(), HasSubstr("\"step\":[1,2]"));
  EXPECT_THAT(other->heard(), HasSubstr("\"step\":[1,2]"));
  run_.play(1);
  run_.happens("warning", "the disk is slow");
  feed_.tick();
  const std::string news = one->heard();
  EXPECT_EQ(news, other->heard());
  EXPECT_THAT(news, HasSubstr("\"step\":[3]"));
  EXPECT_THAT(news, HasSubstr("event: state\n"));
  EXPECT_THAT(news, HasSubstr("the disk is slow"));
  EXPECT_THAT(news, Not(HasSubstr("event: description\n")));
  feed_.tick();
  EXPECT_THAT(one->heard(), IsEmpty());
}

TEST_F(LiveFeedTest, StepsThatAreGoneAreReplaced) {
  run_.play(9);
  const auto stream = enters();
  stream->heard();
  run_.cut_to(4);
  run_.play(8);
  feed_.tick();
  EXPECT_THAT(stream->heard(), HasSubstr("id: 12\ndata: {\"whole\":true,"));
}

TEST_F(LiveFeedTest, AnEndedRunSaysSo) {
  const auto stream = enters();
  run_.ends("failed", "a machine was lost");
  feed_.tick();
  EXPECT_THAT(stream->heard(), HasSubstr("a machine was lost"));
}

TEST_F(LiveFeedTest, WhatCannotBeReadIsNotTold) {
  run_.play(3);
  const auto stream = enters();
  stream->heard();
  run_.play(1);
  run_.breaks({ErrorCode::kCorrupt, "metrics.jsonl is damaged", "", ""});
  feed_.tick();
  EXPECT_THAT(stream->heard(), IsEmpty());
}

TEST_F(LiveFeedTest, ARunThatCannotBeReadAnyMoreSaysSo) {
  const auto stream = enters();
  stream->heard();
  run_.ends("silent", "");
  run_.breaks({ErrorCode::kConfig, "no run in runs/a", "no such folder", ""});
  feed_.tick();
  EXPECT_THAT(stream->heard(), HasSubstr("event: unreadable\n"
                                         "data: {\"error\":\"no run in runs/a\""));
}

TEST_F(LiveFeedTest, WhatIsReadBetweenTwoTicksIsToldAtTheNext) {
  EXPECT_TRUE(feed_.has_more());  // data that no page has requested yet
  const auto stream = enters();
  EXPECT_FALSE(feed_.has_more());
  stream->heard();
  run_.is_long();
  run_.play(2);
  feed_.go_on();
  run_.happens("warning", "the disk is slow");
  feed_.go_on();
  EXPECT_TRUE(feed_.has_more());
  EXPECT_THAT(stream->heard(), IsEmpty());
  feed_.tick();
  const std::string news = stream->heard();
  EXPECT_THAT(news, HasSubstr("\"step\":[1,2]"));
  EXPECT_THAT(news, HasSubstr("the disk is slow"));
}

TEST_F(LiveFeedTest, NobodyLooksOnAndNothingIsRead) {
  feed_.tick();
  EXPECT_EQ(run_.looks(), 0);
  enters().reset();
  const int looks = run_.looks();
  feed_.tick();
  EXPECT_EQ(run_.looks(), looks);
  EXPECT_EQ(feed_.streams(), 0U);
}

TEST_F(LiveFeedTest, ASingleAnswerIsFreshWithoutALookEach) {
  for (int i = 0; i < 100; ++i) feed_.refresh();
  EXPECT_GE(run_.looks(), 1);
  EXPECT_LT(run_.looks(), 100);
}

TEST(QuietFeed, SaysThatItIsThere) {
  PlayedRun run(10);
  LiveFeed feed(run, 0.0);
  const auto stream = std::make_shared<HeardStream>();
  feed.add(stream, {});
  stream->heard();
  feed.tick();
  EXPECT_EQ(stream->heard(), ": still here\n\n");
  EXPECT_EQ(stream->checks_, 1);
}

}  // namespace
}  // namespace motley
