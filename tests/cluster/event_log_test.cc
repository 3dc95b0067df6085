#include "cluster/run_record/event_log.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace motley {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class EventLogTest : public testing::Test {
 protected:
  EventLogTest() {
    const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
    file_ = std::filesystem::path(testing::TempDir()) /
            (std::string("motley-events-") + info->name() + ".jsonl");
    std::filesystem::remove(file_);
  }

  ~EventLogTest() override { std::filesystem::remove(file_); }

  // The readable events of the file.
  [[nodiscard]] std::vector<RunEvent> written() const {
    std::vector<RunEvent> events;
    std::ifstream file(file_);
    for (std::string line; std::getline(file, line);) {
      const auto json = parse_json(line, "test");
      const auto event = json.ok() ? run_event_from_json(*json, "test") : json.error();
      if (event.ok()) events.push_back(*event);
    }
    return events;
  }

  std::filesystem::path file_;
  std::vector<std::string> logged_;
  Log log_{"", LogLevel::kInfo, [this](std::string_view line) { logged_.emplace_back(line); }};
};

TEST_F(EventLogTest, LogsAndWritesTheSameSentence) {
  const EventLog event_log(file_, log_);
  event_log.emit(RunEventKind::kCheckpoint, 100, "saved runs/a/checkpoints/step-000100");
  event_log.emit(RunEventKind::kWarning, 101, "stage 1 (box): slower", "box");
  EXPECT_THAT(logged_, ElementsAre("info: saved runs/a/checkpoints/step-000100\n",
                                   "warning: stage 1 (box): slower\n"));
  const auto events = written();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].text, "saved runs/a/checkpoints/step-000100");
  EXPECT_EQ(events[0].kind, RunEventKind::kCheckpoint);
  EXPECT_EQ(events[0].step, 100);
  EXPECT_EQ(events[1].text, "stage 1 (box): slower");
  EXPECT_EQ(events[1].machine, "box");
  EXPECT_GE(events[1].time_s, events[0].time_s);
}

TEST_F(EventLogTest, OnlyWritesStartAndEnd) {
  const EventLog event_log(file_, log_);
  event_log.emit(RunEventKind::kStarted, 0, "begins");
  event_log.emit(RunEventKind::kEnded, 9, "step 9 done");
  EXPECT_THAT(logged_, IsEmpty());
  EXPECT_THAT(written(), SizeIs(2));
}

TEST_F(EventLogTest, AppendsAndEndsATruncatedLine) {
  std::ofstream(file_) << "{\"time\":1,\"step\":1,\"kind\":\"warn";
  EventLog(file_, log_).emit(RunEventKind::kResumed, 5, "goes on");
  EventLog(file_, log_).emit(RunEventKind::kEnded, 6, "done");
  const auto events = written();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].text, "goes on");
}

TEST_F(EventLogTest, WritesAnyTextOnOneLine) {
  const EventLog event_log(file_, log_);
  event_log.emit(RunEventKind::kWarning, 1, "two\nlines \xff and " + std::string(10'000, 'x'));
  const auto events = written();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_THAT(events[0].text, HasSubstr("two?lines"));
  EXPECT_LE(events[0].text.size(), 4096U);
}

TEST_F(EventLogTest, WarnsOnceIfItCannotWrite) {
  const EventLog event_log(file_ / "not a folder", log_);
  event_log.emit(RunEventKind::kEnded, 1, "one");
  event_log.emit(RunEventKind::kEnded, 2, "two");
  EXPECT_THAT(logged_,
              ElementsAre(AllOf(HasSubstr("cannot write"), HasSubstr("the run continues"))));
}

}  // namespace
}  // namespace motley
