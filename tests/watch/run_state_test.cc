#include "watch/view/run_state.h"

#include <deque>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace motley {
namespace {

using testing::HasSubstr;

RunSigns at_work() {
  return {
      .launcher = "process 7 on desk", .quiet_s = 1, .step_s = 0.5, .last_step = 40, .steps = 100};
}

TEST(RunState, IsTrainingWhileALauncherTells) {
  EXPECT_EQ(run_state_of(at_work()).phase, RunPhase::kTraining);
  RunSigns planning = at_work();
  planning.last_step = 0;
  planning.quiet_s = 600;
  EXPECT_EQ(run_state_of(planning).phase, RunPhase::kPreparing);
  EXPECT_THAT(run_state_of(planning).text, HasSubstr("querying and measuring the machines"));
  planning.is_planned = true;
  EXPECT_EQ(run_state_of(planning).phase, RunPhase::kPreparing);
  EXPECT_THAT(run_state_of(planning).text, HasSubstr("planned"));
}

TEST(RunState, IsSilentWhenNothingComesForManySteps) {
  RunSigns signs = at_work();
  signs.quiet_s = kQuiet_s + 1;
  EXPECT_EQ(run_state_of(signs).phase, RunPhase::kSilent);
  EXPECT_THAT(run_state_of(signs).text, HasSubstr("step 40 of 100"));
  signs.step_s = 10;
  EXPECT_EQ(run_state_of(signs).phase, RunPhase::kTraining);
}

TEST(RunState, IsWhatTheReportSaysOnceTheLauncherIsGone) {
  RunSigns signs = at_work();
  signs.launcher.clear();
  signs.report = ReportedEnd{40, {}};
  EXPECT_EQ(run_state_of(signs).phase, RunPhase::kEnded);
  EXPECT_EQ(run_state_of(signs).status, 0);
  signs.report = ReportedEnd{40, EarlyEnd{4, "machine box was lost"}};
  EXPECT_EQ(run_state_of(signs).phase, RunPhase::kFailed);
  EXPECT_EQ(run_state_of(signs).status, 4);
  EXPECT_THAT(run_state_of(signs).text, HasSubstr("machine box was lost"));
}

TEST(RunState, WhoeverIsToldToEndHasNotFailed) {
  RunSigns signs = at_work();
  signs.launcher.clear();
  signs.report = ReportedEnd{40, EarlyEnd{130, "interrupted"}};
  EXPECT_EQ(run_state_of(signs),
            (RunState{RunPhase::kStopped, 130, "stopped by Ctrl-C: step 40 of 100 completed"}));
  signs.report = ReportedEnd{40, EarlyEnd{143, "terminated"}};
  EXPECT_EQ(run_state_of(signs).phase, RunPhase::kStopped);
}

TEST(RunState, AFolderThatCannotBeReadTellsNothing) {
  RunSigns signs = at_work();
  signs.unreadable = "cannot look for runs/a: Permission denied";
  EXPECT_EQ(run_state_of(signs), (RunState{RunPhase::kSilent, {}, signs.unreadable}));
}

TEST(RunState, StepsThatAreNotKnownAreNoSignThatNoneIsDone) {
  RunSigns signs = at_work();
  signs.last_step = 0;
  EXPECT_EQ(run_state_of(signs).phase, RunPhase::kPreparing);
  signs.lacks_metrics = true;
  EXPECT_EQ(run_state_of(signs).phase, RunPhase::kTraining);
}

TEST(RunState, IsRestartingFromTheLossToTheNextLaunch) {
  RunSigns signs = at_work();
  signs.report = ReportedEnd{40, EarlyEnd{4, "machine box was lost"}};
  signs.goes_on = PendingRestart{"machine box was lost; the run continues from step 30", 500};
  EXPECT_EQ(run_state_of(signs).phase, RunPhase::kRestarting);
  EXPECT_THAT(run_state_of(signs).text, HasSubstr("continues from step 30"));
  // Between two launches there is briefly no launcher.
  signs.launcher.clear();
  signs.goes_on->ago_s = 1;
  EXPECT_EQ(run_state_of(signs).phase, RunPhase::kRestarting);
  signs.goes_on->ago_s = kGap_s + 1;
  EXPECT_EQ(run_state_of(signs).phase, RunPhase::kFailed);
}

TEST(RunState, TheNewestWordOfLaunchesSaysWhetherItGoesOn) {
  const auto said = [](const std::vector<RunEventKind>& kinds) {
    std::deque<RunEvent> events;
    for (const RunEventKind kind : kinds) events.push_back({100, 7, kind, "why", ""});
    return said_to_go_on(events, 103);
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
  RunSigns signs = at_work();
  signs.launcher.clear();
  EXPECT_EQ(run_state_of(signs).phase, RunPhase::kSilent);
  signs.report = ReportedEnd{30, {}};
  EXPECT_EQ(run_state_of(signs).phase, RunPhase::kSilent);
}

}  // namespace
}  // namespace motley
