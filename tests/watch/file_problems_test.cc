#include "watch/view/file_problems.h"

#include <deque>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kNoon_s = 1795608000.0;  // 12:00:00 UTC

class RunTroublesTest : public testing::Test {
 protected:
  void happens(RunEventKind kind, std::int64_t step, const std::string& text = "it was so") {
    events_.push_back({kNoon_s + static_cast<double>(step), step, kind, text, ""});
  }

  std::deque<RunEvent> events_;
};

TEST_F(RunTroublesTest, AreNoneWhereSavesAreCommitted) {
  happens(RunEventKind::kStarted, 0);
  happens(RunEventKind::kCheckpoint, 10);
  happens(RunEventKind::kWarning, 12);
  EXPECT_THAT(file_problems_of(events_, 12, {}), IsEmpty());
}

TEST_F(RunTroublesTest, ASaveThatFailedIsOneUntilAnotherIsCommitted) {
  happens(RunEventKind::kCheckpoint, 10);
  happens(RunEventKind::kCheckpointFailed, 20, "step 20 was not saved: the disk is full");
  auto file_problems = file_problems_of(events_, 25, {});
  ASSERT_EQ(file_problems.size(), 1U);
  EXPECT_EQ(file_problems[0].text, "the save of step 20 failed, since 12:00:20 UTC");
  EXPECT_EQ(file_problems[0].advice, "step 20 was not saved: the disk is full");
  happens(RunEventKind::kCheckpointFailed, 30, "step 30 was not saved: make room");
  file_problems = file_problems_of(events_, 35, {});
  ASSERT_EQ(file_problems.size(), 1U);
  EXPECT_EQ(file_problems[0].text, "all 2 saves from step 20 on failed, since 12:00:20 UTC");
  EXPECT_EQ(file_problems[0].advice, "step 30 was not saved: make room");
  happens(RunEventKind::kCheckpoint, 40);
  EXPECT_THAT(file_problems_of(events_, 45, {}), IsEmpty());
}

TEST_F(RunTroublesTest, AnotherLaunchHasNotFailedYet) {
  happens(RunEventKind::kCheckpointFailed, 20);
  happens(RunEventKind::kMetricsFailed, 20);
  happens(RunEventKind::kResumed, 10);
  EXPECT_THAT(file_problems_of(events_, 10, {}), IsEmpty());
}

TEST_F(RunTroublesTest, StepsThatAreNotWrittenAreOneUntilTheyAre) {
  happens(RunEventKind::kMetricsFailed, 7, "cannot write metrics.jsonl: no space");
  const auto file_problems = file_problems_of(events_, 7, {});
  ASSERT_EQ(file_problems.size(), 1U);
  EXPECT_EQ(file_problems[0].text, "no step after 7 is in metrics.jsonl, since 12:00:07 UTC");
  EXPECT_THAT(file_problems[0].advice, HasSubstr("no space; free space there"));
  EXPECT_THAT(file_problems_of(events_, 8, {}), IsEmpty());
  EXPECT_THAT(file_problems_of(events_, {}, {}), IsEmpty());  // as of a run that has ended
}

TEST_F(RunTroublesTest, TheSameRemedyIsNotSaidTwice) {
  happens(RunEventKind::kMetricsFailed, 7, "cannot write metrics.jsonl: no space");
  const auto file_problems = file_problems_of(events_, 7, {.disk_full_since_s = kNoon_s});
  ASSERT_EQ(file_problems.size(), 2U);
  EXPECT_EQ(file_problems[0].advice, "cannot write metrics.jsonl: no space");
  EXPECT_THAT(file_problems[1].advice, HasSubstr("free space there"));
}

TEST_F(RunTroublesTest, WhatIsSeenOfTheFolderIsSaidSinceWhen) {
  const auto file_problems = file_problems_of(
      events_, 0, {.metrics_gone_since_s = kNoon_s, .disk_full_since_s = kNoon_s + 61});
  ASSERT_EQ(file_problems.size(), 2U);
  EXPECT_EQ(file_problems[0].text, "metrics.jsonl was removed, since 12:00:00 UTC at the latest");
  EXPECT_THAT(file_problems[0].advice, HasSubstr("--resume"));
  EXPECT_THAT(file_problems[1].text, HasSubstr("since 12:01:01 UTC"));
}

TEST(Beside, ATroubleIsSaidWithTheVerdictAndNotInstead) {
  const FileProblem problem{"the save of step 20 failed", "make room"};
  EXPECT_EQ(
      with_problems({HealthLevel::kGood, "as planned", ""}, {problem}),
      (RunHealth{HealthLevel::kWatch, "as planned; the save of step 20 failed", "make room"}));
  EXPECT_EQ(with_problems({HealthLevel::kBad, "box is slow", "look there"}, {problem}),
            (RunHealth{HealthLevel::kBad, "box is slow; the save of step 20 failed",
                       "look there; make room"}));
  const RunHealth good{HealthLevel::kGood, "as planned", ""};
  EXPECT_EQ(with_problems(good, {}), good);
}

}  // namespace
}  // namespace motley
