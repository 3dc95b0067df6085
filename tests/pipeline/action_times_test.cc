#include "pipeline/execute/action_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include <gmock/gmock.h>

namespace motley {
namespace {

using testing::ElementsAre;

// A device whose progress and work the test sets.
class LateClock final : public StageClock {
 public:
  void begin() override { timestamps_s_.push_back(free_s_); }

  void mark(double /*waited_s*/) override { timestamps_s_.push_back(free_s_); }

  [[nodiscard]] std::vector<double> reached() override {
    std::vector<double> reached_s;
    while (!timestamps_s_.empty() && timestamps_s_.front() <= now_s_) {
      reached_s.push_back(timestamps_s_.front());
      timestamps_s_.pop_front();
    }
    return reached_s;
  }

  void finish() override {
    if (!timestamps_s_.empty()) now_s_ = timestamps_s_.back();
  }

  // The host submits this much work.
  void give(double work_s) { free_s_ = std::max(free_s_, host_s_) + work_s; }

  // The host works until then. The device sets its marks as soon as it gets them.
  void host_at(double host_s) {
    host_s_ = host_s;
    free_s_ = std::max(free_s_, host_s);
  }

  void device_at(double now_s) { now_s_ = now_s; }

 private:
  double host_s_ = 0;
  double free_s_ = 0;  // when it has finished the submitted work
  double now_s_ = 0;   // the device's progress
  std::deque<double> timestamps_s_;
};

constexpr Action kForward{ActionKind::kForward, ChunkId{0}, MicroId{0}};
constexpr Action kNext{ActionKind::kForward, ChunkId{0}, MicroId{1}};
constexpr Action kVote{ActionKind::kVote, {}, {}};
constexpr Action kStep{ActionKind::kStep, {}, {}};
constexpr bool kTraining = true;
constexpr bool kEvaluation = false;

class ActionTimesTest : public testing::Test {
 protected:
  // In the format "F0.0 compute 3".
  [[nodiscard]] std::vector<std::string> spans() const {
    std::vector<std::string> words;
    for (const TraceSpan& span : recorder_.spans()) {
      words.push_back(fmt::format("{} {} {:g}", span.name, span.lane, span.duration_s));
    }
    return words;
  }

  LateClock clock_;
  ActionTimes times_{Rank{0}, clock_};
  TraceRecorder recorder_{100};
};

TEST_F(ActionTimesTest, CountADevicesTimeNotTheHosts) {
  times_.record(&recorder_);
  times_.begin({1, kTraining, 0});
  clock_.give(3);
  times_.end(kForward);
  clock_.give(2);
  times_.end(kNext);
  clock_.device_at(5);
  const StepTimes sums = times_.take_totals(kTraining);
  EXPECT_EQ(sums.compute_s, 5);
  EXPECT_EQ(sums.wait_s.total(), 0);
  EXPECT_THAT(spans(), ElementsAre("F0.0 compute 3", "F0.1 compute 2"));
}

// The host waited from 1 to 6; the device had work until 4.
TEST_F(ActionTimesTest, WaitingBeginsWhenADeviceHasDoneItsWork) {
  times_.record(&recorder_);
  times_.begin({1, kTraining, 0});
  clock_.give(4);
  times_.end(kForward);
  clock_.host_at(6);
  times_.end_part(kNext, 5);
  clock_.give(1);
  times_.end(kNext);
  clock_.device_at(7);
  const StepTimes sums = times_.take_totals(kTraining);
  EXPECT_EQ(sums.compute_s, 5);
  EXPECT_EQ(sums.wait_s.total(), 2);
  EXPECT_THAT(spans(), ElementsAre("F0.0 compute 4", "F0.1 wait 2", "F0.1 compute 1"));
}

// An evaluation has the number of the preceding step.
TEST_F(ActionTimesTest, NothingIsRecordedOfEvaluations) {
  times_.record(&recorder_);
  times_.begin({1, kEvaluation, 0});
  clock_.give(3);
  times_.end(kForward);
  clock_.device_at(3);
  EXPECT_EQ(times_.take_totals(kEvaluation).compute_s, 3);
  times_.begin({2, kTraining, 0});
  clock_.give(2);
  times_.end(kNext);
  clock_.device_at(5);
  EXPECT_EQ(times_.take_totals(kTraining).compute_s, 2);
  EXPECT_THAT(spans(), ElementsAre("F0.1 compute 2"));
}

// The recorder no longer exists when a failed run is asked for its last action.
TEST_F(ActionTimesTest, NothingIsRecordedOfARunThatFailed) {
  times_.record(&recorder_);
  times_.begin({1, kTraining, 0});
  clock_.give(3);
  times_.end(kForward);
  clock_.give(2);
  times_.end(kNext);
  clock_.device_at(4);
  const auto under_way = times_.under_way();
  ASSERT_TRUE(under_way.has_value());
  EXPECT_EQ(to_text(under_way->action), to_text(kNext));
  EXPECT_TRUE(spans().empty());
}

// Work of the host after its wait (decoding, for example) is not waiting.
TEST_F(ActionTimesTest, APartWaitsNoLongerThanTheHostDid) {
  times_.record(&recorder_);
  times_.begin({1, kTraining, 0});
  clock_.host_at(3);
  times_.end_part(kForward, 2);
  clock_.give(1);
  times_.end(kForward);
  clock_.device_at(4);
  const StepTimes sums = times_.take_totals(kTraining);
  EXPECT_EQ(sums.compute_s, 2);
  EXPECT_EQ(sums.wait_s.total(), 2);
  EXPECT_EQ(sums.wait_s.of(WaitCause::kActivation), 2);
  EXPECT_THAT(spans(), ElementsAre("F0.0 wait 2", "F0.0 compute 2"));
}

TEST_F(ActionTimesTest, WhatComesBeforeAWaitIsASpanOfItsOwn) {
  times_.record(&recorder_);
  times_.begin({1, kTraining, 0});
  clock_.give(1);
  times_.end_part(kVote, 0);
  clock_.host_at(3);
  times_.end_part(kVote, 2);
  times_.end(kVote);
  clock_.device_at(3);
  EXPECT_EQ(times_.take_totals(kTraining).compute_s, 1);
  EXPECT_THAT(spans(), ElementsAre("V compute 1", "V wait 2"));
}

TEST_F(ActionTimesTest, WhatIsNotOverIsToldWithTheNextRun) {
  times_.begin({1, kTraining, 0});
  clock_.give(3);
  times_.end(kForward);
  clock_.give(2);
  times_.end(kStep);
  clock_.device_at(4);
  StepTimes sums = times_.take_totals(kTraining);
  EXPECT_EQ(sums.compute_s, 3);
  EXPECT_EQ(sums.optimizer_s, 0);
  clock_.device_at(5);
  sums = times_.take_totals(kTraining);
  EXPECT_EQ(sums.compute_s, 2);
  EXPECT_EQ(sums.optimizer_s, 2);
}

TEST_F(ActionTimesTest, LoadingSamplesIsTheTimeOfTheData) {
  times_.begin({1, kTraining, 0});
  clock_.give(2);
  times_.end(Action{ActionKind::kLoad, {}, {}});
  clock_.give(3);
  times_.end(kForward);
  clock_.device_at(5);
  const StepTimes sums = times_.take_totals(kTraining);
  EXPECT_EQ(sums.compute_s, 5);
  EXPECT_EQ(sums.data_s, 2);
}

TEST_F(ActionTimesTest, EvaluationsAndWhatIsBetweenRunsCountForNoStep) {
  times_.begin({1, kTraining, 0});
  clock_.give(1);
  times_.end(kStep);
  clock_.host_at(10);
  times_.begin({1, kEvaluation, 0});
  clock_.give(4);
  times_.end(kForward);
  clock_.device_at(20);
  EXPECT_EQ(times_.take_totals(kEvaluation).compute_s, 4);
  EXPECT_EQ(times_.take_totals(kTraining).compute_s, 1);
}

TEST_F(ActionTimesTest, TheEndOfARecordHasAllOfIt) {
  times_.begin({1, kTraining, 0});
  clock_.give(1);
  times_.end(kForward);
  times_.record(&recorder_);
  times_.begin({2, kTraining, 0});
  clock_.give(2);
  times_.end(kNext);
  times_.record(nullptr);
  times_.begin({3, kTraining, 0});
  clock_.give(4);
  times_.end(kForward);
  EXPECT_THAT(spans(), ElementsAre("F0.1 compute 2"));
}

TEST_F(ActionTimesTest, TheFirstThatIsNotOverIsUnderWay) {
  EXPECT_FALSE(times_.under_way());
  times_.begin({7, kTraining, 0});
  clock_.give(3);
  times_.end(kForward);
  clock_.give(2);
  times_.end(kNext);
  clock_.device_at(3);
  const auto under_way = times_.under_way();
  ASSERT_TRUE(under_way);
  EXPECT_EQ(under_way->action, kNext);
  EXPECT_EQ(under_way->step, 7);
  clock_.device_at(5);
  EXPECT_FALSE(times_.under_way());
}

TEST_F(ActionTimesTest, OnTheHostAllIsOverWhenItEnds) {
  HostClock host(ComputeThrottle(0, 1));
  ActionTimes times(Rank{0}, host);
  times.begin({1, kTraining, 0});
  times.end(kStep);
  const StepTimes sums = times.take_totals(kTraining);
  EXPECT_GT(sums.compute_s, 0);
  EXPECT_EQ(sums.optimizer_s, sums.compute_s);
  EXPECT_FALSE(times.under_way());
}

}  // namespace
}  // namespace motley
