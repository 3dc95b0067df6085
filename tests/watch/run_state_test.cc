#include "watch/view/run_state.h"

#include <deque>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley {
namespace {

using testing::HasSubstr;

RunObservations at_work() {
  return {
      .launcher = "process 7 on desk", .quiet_s = 1, .step_s = 0.5, .last_step = 40, .steps = 100};
}

TEST(RunState, IsTrainingWhileALauncherTells) {
  EXPECT_EQ(run_state_of(at_work()).phase, RunPhase::kTraining);
  RunObservations planning = at_work();
  planning.last_step = 0;
  planning.quiet_s = 600;
  EXPECT_EQ(run_state_of(planning).phase, RunPhase::kPreparing);
  EXPECT_THAT(run_state_of(planning).text, HasSubstr("querying and measuring the machines"));
  planning.is_planned = true;
  EXPECT_EQ(run_state_of(planning).phase, RunPhase::kPreparing);
  EXPECT_THAT(run_state_of(planning).text, HasSubstr("planned"));
}

TEST(RunState, IsSilentWhenNothingComesForManySteps) {
  RunObservations observations = at_work();
  observations.quiet_s = kQuiet_s + 1;
  EXPECT_EQ(run_state_of(observations).phase, RunPhase::kSilent);
  EXPECT_THAT(run_state_of(observations).text, HasSubstr("step 40 of 100"));
  observations.step_s = 10;
  EXPECT_EQ(run_state_of(observations).phase, RunPhase::kTraining);
}

TEST(RunState, IsWhatTheReportSaysOnceTheLauncherIsGone) {
  RunObservations observations = at_work();
  observations.launcher.clear();
  observations.reported_end = RunEnd{40};
  EXPECT_EQ(run_state_of(observations).phase, RunPhase::kEnded);
  EXPECT_EQ(run_state_of(observations).status, 0);
  observations.reported_end->stopped_early = "it overfits";
  EXPECT_EQ(run_state_of(observations).text,
            "ended: step 40 of 100 completed; stopped early: it overfits");
  observations.reported_end = RunEnd{40, 4, "machine box was lost"};
  EXPECT_EQ(run_state_of(observations).phase, RunPhase::kFailed);
  EXPECT_EQ(run_state_of(observations).status, 4);
  EXPECT_THAT(run_state_of(observations).text, HasSubstr("machine box was lost"));
}

TEST(RunState, WhoeverIsToldToEndHasNotFailed) {
  RunObservations observations = at_work();
  observations.launcher.clear();
  observations.reported_end = RunEnd{40, 130, "interrupted"};
  EXPECT_EQ(run_state_of(observations),
            (RunState{RunPhase::kStopped, 130, "stopped by Ctrl-C: step 40 of 100 completed"}));
  observations.reported_end = RunEnd{40, 143, "terminated"};
  EXPECT_EQ(run_state_of(observations).phase, RunPhase::kStopped);
}

TEST(RunState, AFolderThatCannotBeReadTellsNothing) {
  RunObservations observations = at_work();
  observations.unreadable = "cannot look for runs/a: Permission denied";
  EXPECT_EQ(run_state_of(observations), (RunState{RunPhase::kSilent, {}, observations.unreadable}));
}

TEST(RunState, StepsThatAreNotKnownAreNoSignThatNoneIsDone) {
  RunObservations observations = at_work();
  observations.last_step = 0;
  EXPECT_EQ(run_state_of(observations).phase, RunPhase::kPreparing);
  observations.lacks_metrics = true;
  EXPECT_EQ(run_state_of(observations).phase, RunPhase::kTraining);
}

TEST(RunState, IsRestartingFromTheLossToTheNextLaunch) {
  RunObservations observations = at_work();
  observations.reported_end = RunEnd{40, 4, "machine box was lost"};
  observations.pending_restart =
      PendingRestart{"machine box was lost; the run continues from step 30", 500};
  EXPECT_EQ(run_state_of(observations).phase, RunPhase::kRestarting);
  EXPECT_THAT(run_state_of(observations).text, HasSubstr("continues from step 30"));
  // Between two launches there is briefly no launcher.
  observations.launcher.clear();
  observations.pending_restart->ago_s = 1;
  EXPECT_EQ(run_state_of(observations).phase, RunPhase::kRestarting);
  observations.pending_restart->ago_s = kGap_s + 1;
  EXPECT_EQ(run_state_of(observations).phase, RunPhase::kFailed);
}

TEST(RunState, TheNewestWordOfLaunchesSaysWhetherItGoesOn) {
  const auto said = [](const std::vector<RunEventKind>& kinds) {
    std::deque<RunEvent> events;
    for (const RunEventKind kind : kinds) events.push_back({100, 7, kind, "why", ""});
    return pending_restart_of(events, 103);
  };
  using enum RunEventKind;
  ASSERT_TRUE(said({kStarted, kLost}).has_value());
  EXPECT_EQ(said({kStarted, kLost})->ago_s, 3);
  EXPECT_EQ(said({kStarted, kLost})->text, "why");
  EXPECT_TRUE(said({kLost, kReplanned, kWarning}).has_value());
  for (const RunEventKind kind : {kStarted, kResumed, kRestarted, kEnded}) {
    EXPECT_FALSE(said({kLost, kind, kWarning}).has_value());
  }
  EXPECT_FALSE(said({}).has_value());
  EXPECT_FALSE(said({kCheckpoint}).has_value());
}

// A resumed run whose launcher was killed: the report is of the earlier session.
TEST(RunState, IsSilentWhereStepsWereDoneSinceTheReport) {
  RunObservations observations = at_work();
  observations.launcher.clear();
  EXPECT_EQ(run_state_of(observations).phase, RunPhase::kSilent);
  observations.reported_end = RunEnd{30};
  EXPECT_EQ(run_state_of(observations).phase, RunPhase::kSilent);
}

}  // namespace
}  // namespace motley
