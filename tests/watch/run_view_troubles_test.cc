// Failures beside the training, as viewers of the run folder see them.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/watch/viewed_folder.h"

namespace motley {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class RunViewTroublesTest : public RunViewTest {};

TEST_F(RunViewTroublesTest, ASaveThatFailedIsSaidBesideTheVerdict) {
  write_run();
  begin_launch();
  RunView view = open();
  const RunHealth before = view.health();
  EXPECT_EQ(before.level, HealthLevel::kGood);
  happens(RunEventKind::kCheckpointFailed, 8, "step 8 was not saved: the disk is full");
  EXPECT_TRUE(view.poll(kNow_s + 1).state);
  EXPECT_THAT(health_text(view), StartsWith(before.text + "; the save of step 8 failed, since "));
  EXPECT_EQ(view.health().level, HealthLevel::kWatch);
  EXPECT_EQ(view.state()["verdict"]["advice"], "step 8 was not saved: the disk is full");
  // A worse problem has priority.
  happens(RunEventKind::kLost, 10, "machine slow was lost; the run continues");
  view.poll(kNow_s + 2);
  EXPECT_EQ(health_text(view), "restarting: machine slow was lost; the run continues");
}

TEST_F(RunViewTroublesTest, StepsWhoseFileWasRemovedUnderTheRunAreMissed) {
  write_run();
  begin_launch();
  RunView view = open();
  EXPECT_THAT(health_text(view), Not(HasSubstr("metrics.jsonl")));
  std::filesystem::remove(dir_ / "metrics.jsonl");
  view.poll(kNow_s + 1);
  EXPECT_EQ(view.phase(), RunPhase::kTraining);
  EXPECT_THAT(health_text(view), HasSubstr("; metrics.jsonl was removed, since "));
  EXPECT_THAT(view.health().advice, HasSubstr("--resume"));
  // A later viewer gets it from the events.
  happens(RunEventKind::kCheckpoint, 10);
  EXPECT_THAT(health_text(open()), HasSubstr("; metrics.jsonl was removed, since "));
  add_steps(1, 11);
  view.poll(kNow_s + 2);
  EXPECT_THAT(health_text(view), Not(HasSubstr("metrics.jsonl")));
}

TEST_F(RunViewTroublesTest, StepsThatAreNotWrittenAreMissedUntilTheyAre) {
  write_run();
  begin_launch();
  happens(RunEventKind::kMetricsFailed, 10, "cannot write metrics.jsonl");
  RunView view = open();
  EXPECT_THAT(health_text(view), HasSubstr("; no step after 10 is in metrics.jsonl, since "));
  add_steps(11, 12);
  view.poll(kNow_s + 1);
  EXPECT_THAT(health_text(view), Not(HasSubstr("metrics.jsonl")));
}

// Without a launcher, missing steps are not reported.
TEST_F(RunViewTroublesTest, AFolderWithoutALauncherLacksNoSteps) {
  write_run();
  happens(RunEventKind::kStarted, 0);
  happens(RunEventKind::kCheckpoint, 10);
  std::filesystem::remove(dir_ / "metrics.jsonl");
  EXPECT_THAT(health_text(open()), Not(HasSubstr("metrics.jsonl")));
}

}  // namespace
}  // namespace motley
