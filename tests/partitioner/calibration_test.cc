#include "partitioner/report/calibration.h"

#include <gmock/gmock.h>

#include "base/json.h"
#include "partitioner/report/scaled_profile.h"
#include "partitioner/search/simulate_plan.h"
#include "tests/partitioner/random_problem.h"

namespace motley {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kMib = 1 << 20;

Problem two_machines() {
  Problem problem;
  problem.layers.assign(6, {.work_s = 0.1, .output_floats = 10});
  problem.machines = {{1}, {0.5}};
  return problem;
}

// A run that took `factor` times the plan's prediction, and `more_bytes` more memory.
RunMeasurement run_of(const PlanningInput& input, double factor, std::int64_t more_bytes) {
  RunMeasurement run;
  const auto plan = make_plan(input);
  if (!plan.ok()) ADD_FAILURE() << describe(plan.error());
  if (plan.ok()) run.plan = *plan;
  for (const RankPlan& rank : run.plan.ranks) {
    run.busy_s.push_back(factor * rank.compute_s);
    run.peak_bytes.push_back(rank.memory_bytes + more_bytes);
  }
  run.step_s = factor * run.plan.predicted_step_s;
  return run;
}

TEST(Calibration, FindsTheFactorAndTheOffsetOfEachDevice) {
  const PlanningInput input = two_machines().input();
  RunMeasurement run = run_of(input, 1.5, 3 * kMib);
  ASSERT_EQ(run.plan.rank_count(), 2);
  const std::string slowed = run.plan.ranks[1].machine;
  run.busy_s[1] *= 2;
  const auto calibration = calibrate(input, {run});
  ASSERT_TRUE(calibration.ok()) << describe(calibration.error());
  ASSERT_EQ(calibration->size(), 2U);
  for (const DeviceCalibration& device : *calibration) {
    EXPECT_NEAR(device.time_factor, device.machine == slowed ? 3 : 1.5, 1e-9);
    EXPECT_EQ(device.memory_offset_bytes, 3 * kMib);
  }
}

TEST(Calibration, DoesNotBelieveThatADeviceIsFastWhichMostlyWaits) {
  const PlanningInput input = two_machines().input();
  RunMeasurement run = run_of(input, 1, 0);
  run.busy_s[0] *= 0.3;
  EXPECT_EQ(calibrate(input, {run})->front().time_factor, 1);
  run.step_s *= 0.3;  // now it was busy all the time
  EXPECT_NEAR(calibrate(input, {run})->front().time_factor, 0.3, 1e-9);
}

// It finished its work within the step, so its work takes at most the step time, whatever its
// profile says.
TEST(Calibration, BelievesThatADeviceWhichMostlyWaitsNeedsNoMoreThanTheStep) {
  const PlanningInput input = two_machines().input();
  RunMeasurement run = run_of(input, 1, 0);
  run.busy_s[0] *= 0.3;
  run.step_s = 0.8 * run.plan.ranks[0].compute_s;
  EXPECT_NEAR(calibrate(input, {run})->front().time_factor, 0.8, 1e-9);
}

TEST(Calibration, TakesTheMedianOfTimesAndTheMostMemory) {
  const PlanningInput input = two_machines().input();
  const auto calibration = calibrate(
      input, {run_of(input, 1.1, 5 * kMib), run_of(input, 4, kMib), run_of(input, 1.2, -kMib)});
  ASSERT_TRUE(calibration.ok());
  EXPECT_NEAR(calibration->front().time_factor, 1.2, 1e-9);
  EXPECT_EQ(calibration->front().memory_offset_bytes, 5 * kMib);
}

// A plan's peak is an upper bound. A run that stayed below it says nothing about the next plan.
TEST(Calibration, NeverTakesMemoryFromTheNextPrediction) {
  const PlanningInput input = two_machines().input();
  const auto calibration = calibrate(input, {run_of(input, 1, -kMib)});
  ASSERT_TRUE(calibration.ok());
  EXPECT_EQ(calibration->front().memory_offset_bytes, 0);
  EXPECT_EQ(calibrated(input.profile, *calibration).devices.front().baseline_bytes,
            input.profile.devices.front().baseline_bytes);
}

TEST(Calibration, DoesNotBelieveFactorsBeyondFive) {
  const PlanningInput input = two_machines().input();
  const auto calibration = calibrate(input, {run_of(input, 50, 0)});
  ASSERT_TRUE(calibration.ok());
  EXPECT_EQ(calibration->front().time_factor, 5);
  EXPECT_THAT(calibration_text(*calibration), HasSubstr("x 5.00 (the limit)"));
  EXPECT_EQ(calibrate(input, {run_of(input, 0.01, 0)})->front().time_factor, 0.2);
}

TEST(Calibration, LeavesAloneWhatWasNotMeasured) {
  const PlanningInput input = two_machines().input();
  RunMeasurement run = run_of(input, 2, kMib);
  run.busy_s.assign(run.busy_s.size(), 0);
  run.peak_bytes.assign(run.peak_bytes.size(), 0);
  const auto calibration = calibrate(input, {run});
  ASSERT_TRUE(calibration.ok());
  EXPECT_EQ(profile_to_json(calibrated(input.profile, *calibration)),
            profile_to_json(input.profile));
}

TEST(Calibration, RefusesARunOfAnotherModel) {
  const PlanningInput input = two_machines().input();
  RunMeasurement run = run_of(input, 1, 0);
  run.plan.model_hash = "another";
  const auto calibration = calibrate(input, {run});
  ASSERT_FALSE(calibration.ok());
  EXPECT_EQ(calibration.error().code, ErrorCode::kConfig);
}

// The measurement holds for any profile, although the run's own report shows another factor.
TEST(Calibration, SaysWhereTheRunWasPlannedWithAnotherProfile) {
  const PlanningInput input = two_machines().input();
  const RunMeasurement run = run_of(input, 1.2, 0);
  PlanningInput slow = input;
  for (DeviceProfile& device : slow.profile.devices) {
    device = with_times_scaled(std::move(device), 2);
  }
  const auto other = calibrate(slow, {run});
  ASSERT_TRUE(other.ok());
  EXPECT_NEAR(other->front().time_factor, 0.6, 1e-9);
  EXPECT_NEAR(other->front().planned_with, 0.5, 1e-9);
  EXPECT_THAT(calibration_text(*other),
              AllOf(HasSubstr("times x 0.60"), HasSubstr("another profile, with times x 0.50 of")));
  EXPECT_THAT(calibration_text(*calibrate(input, {run})), Not(HasSubstr("another profile")));
}

// The device was profiled while others ran, and the plan assumes that it has the computer to
// itself.
TEST(Calibration, LearnsNothingFromASingleDeviceThatTookWhatItsPlanSays) {
  PlanningInput input = two_machines().input();
  input.profile.devices.front().single_device_factor = 0.5;
  const RunMeasurement run = run_of(input, 1, 0);
  ASSERT_EQ(run.plan.rank_count(), 1);
  EXPECT_NEAR(calibrate(input, {run})->front().time_factor, 1, 1e-9);
}

TEST(Calibration, RefusesARunWithAnotherNumberOfThreads) {
  const PlanningInput input = two_machines().input();
  RunMeasurement run = run_of(input, 1, 0);
  run.plan.ranks[0].threads += 3;
  const auto calibration = calibrate(input, {run});
  ASSERT_FALSE(calibration.ok());
  EXPECT_EQ(calibration.error().code, ErrorCode::kConfig);
  EXPECT_THAT(calibration.error().what, HasSubstr("threads"));
}

TEST(Calibration, RefusesARunInAnotherPrecision) {
  PlanningInput input = two_machines().input();
  RunMeasurement run = run_of(input, 1, 0);
  run.plan.ranks[0].compute_dtype = "bf16";
  const auto calibration = calibrate(input, {run});
  ASSERT_FALSE(calibration.ok());
  EXPECT_EQ(calibration.error().code, ErrorCode::kConfig);
  EXPECT_THAT(calibration.error().cause, HasSubstr("computed in bf16 there"));
  for (RankPlan& rank : run.plan.ranks) rank.compute_dtype = "bf16";
  for (DeviceProfile& device : input.profile.devices) device.compute_dtype = "bf16";
  EXPECT_TRUE(calibrate(input, {run}).ok());
}

// Whatever the true speeds are, a plan made from its own run's calibration predicts that run.
RC_GTEST_PROP(Calibration, MakesTheNextPredictionTrue, ()) {
  const Problem truth = random_problem();
  const PlanningInput real = truth.input();
  PlanningInput wrong = real;
  for (DeviceProfile& device : wrong.profile.devices) {
    device = with_times_scaled(std::move(device), 0.5);
  }
  const auto plan = make_plan(wrong);
  if (!plan.ok()) return;
  const auto happened = simulate_plan(*plan, real.model, real.cluster, real.profile, real.options);
  RC_ASSERT(happened.ok());
  RunMeasurement run{*plan, {}, std::vector<std::int64_t>(plan->ranks.size(), 0)};
  for (std::size_t r = 0; r < plan->ranks.size(); ++r) {
    run.busy_s.push_back(happened->step.compute_s[r] + happened->step.codec_s[r]);
  }
  const auto calibration = calibrate(wrong, {run});
  RC_ASSERT(calibration.ok());
  const auto predicted = simulate_plan(*plan, wrong.model, wrong.cluster,
                                       calibrated(wrong.profile, *calibration), wrong.options);
  RC_ASSERT(predicted.ok());
  RC_ASSERT(std::abs(predicted->step.step_s - happened->step.step_s) <=
            1e-6 * happened->step.step_s);
  // A second calibration from the same run, with the same profile, changes nothing.
  RC_ASSERT(calibrate(wrong, {run, run})->front().time_factor == calibration->front().time_factor);
}

}  // namespace
}  // namespace motley
